"""Malformed calls of layers."""

import numpy as np

from keras_attn import layers
from tests.malformed.calls import Call, kinds
from tests.malformed.values import (
    choice,
    count,
    fixed,
    flag,
    floats,
    ids,
    instance,
    mask,
    number,
    of_keras,
    positions,
    positive,
    rate,
    seed,
    size,
    token_id,
)

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(2, 4, 8)).astype("float32")
MASK = np.array([[True, True, True, False], [True, True, True, True]])
IDS = np.array([[5, 6, 7, 2], [8, 2, 3, 4]], "int32")
POSITIONS = np.array([[0, 1, 2, 3], [0, 1, 2, -1]], "int32")
SEGMENTS = np.array([[0, 0, 1, 1], [0, 0, 0, 1]], "int32")


def attention_mask():
    """Kind of a mask of queries and keys."""
    kind = mask(np.ones((2, 4, 4), bool))
    batches = np.ones((3, 4, 4), bool)
    kind = kind.plus(
        batch=batches, rank_less=batches[:, 0], rank_more=batches[None, None]
    )
    return kind.optional()


def token_mask():
    """Kind of an optional token mask."""
    return mask(MASK).optional()


def _flag(valid):
    return flag(valid).accepts("as in Keras's layers", "zero", "one")


def _attention(folder):
    made = layers.MultiHeadAttention(2, 4)
    made(X, X)
    call = kinds(
        query=floats(X, batch=False),
        value=floats(X),
        key=floats(X, length=True).optional(),
        query_mask=token_mask(),
        value_mask=token_mask(),
        key_mask=token_mask(),
        attention_mask=attention_mask(),
        query_positions=positions(POSITIONS),
        key_positions=positions(POSITIONS),
        query_segment_ids=positions(SEGMENTS),
        key_segment_ids=positions(SEGMENTS),
        return_attention_scores=_flag(True),
        use_causal_mask=_flag(True),
    )
    yield Call(
        "layers.MultiHeadAttention",
        layers.MultiHeadAttention,
        kinds(
            num_heads=size(2),
            key_dim=size(4),
            value_dim=size(4).optional(),
            dropout=rate(0.0),
            use_bias=flag(True),
            output_shape=count(8).accepts(
                "a shape of one axis", "none", "list"
            ),
            attention_axes=count(1, -2).accepts(
                "axes of a list",
                "none",
                "list",
                "below",
                "negative",
                "very_negative",
            ),
            sliding_window=count(2).optional(),
            flash_attention=flag(None).optional(),
            kernel_initializer=of_keras("glorot_uniform"),
            bias_initializer=of_keras("zeros"),
            kernel_regularizer=of_keras(None),
            bias_regularizer=of_keras(None),
            activity_regularizer=of_keras(None),
            kernel_constraint=of_keras(None),
            bias_constraint=of_keras(None),
            use_gate=flag(False),
            seed=seed(0),
            num_key_value_heads=count(1).optional().plus(no_divisor=3),
            causal=flag(False),
            attention_position=instance(layers.RotaryPosition()).optional(),
            qk_norm=choice("head").optional(),
            qk_norm_epsilon=positive(1e-6),
            soft_cap=positive(5.0).optional(),
            use_sinks=flag(False),
            use_qkv_bias=flag(None).optional(),
        ),
        also={
            "heads of the position": (
                {"attention_position": layers.ALiBiPosition(3)},
                ("attention_position", "num_heads"),
            ),
            "width of the position": (
                {"attention_position": layers.TransformerXLPosition(2, 3)},
                ("attention_position", "key_dim"),
            ),
            "dropout of the fused kernel": (
                {"dropout": 0.5, "flash_attention": True},
                ("dropout", "flash_attention"),
            ),
        },
    )
    yield Call(
        "layers.MultiHeadAttention.call",
        made,
        call,
        positional=("query", "value", "key"),
        also={
            "one side of the positions": (
                {"query_segment_ids": None},
                ("query_segment_ids", "key_segment_ids"),
            ),
        },
    )
    yield Call(
        "layers.MultiHeadAttention.call, not built",
        lambda query, value: layers.MultiHeadAttention(2, 4)(query, value),
        kinds(
            query=floats(X, batch=False, width=False),
            value=floats(X, width=False),
        ),
    )


def _scored(folder):
    made = layers.ScoredAttention("general")
    made(X, X)
    yield Call(
        "layers.ScoredAttention",
        layers.ScoredAttention,
        kinds(
            score=choice("additive").without("type").plus(object=object()),
            units=size(4).optional(),
            max_sequence_length=fixed(None),
            local=choice(None).optional(),
            window=count(2),
            hard=choice(None).optional(),
            temperature=positive(1.0),
            dropout=rate(0.0),
            kernel_initializer=of_keras("glorot_uniform"),
            seed=seed(0),
        ),
        also={
            "hard and local": (
                {"hard": "gumbel", "local": "predictive"},
                ("hard", "local"),
            ),
            "hard and dropout": (
                {"hard": "gumbel", "dropout": 0.5},
                ("hard", "dropout"),
            ),
            "units of the dot score": (
                {"score": "dot"},
                ("score", "units"),
            ),
            "length of the dot score": (
                {"score": "dot", "units": None, "max_sequence_length": 4},
                ("score", "max_sequence_length"),
            ),
        },
    )
    yield Call(
        "layers.ScoredAttention, location",
        lambda **given: layers.ScoredAttention("location", **given)(X, X),
        kinds(
            max_sequence_length=size(4)
            .optional()
            .plus(too_short=2)
            .named("key")
        ),
    )
    yield Call(
        "layers.ScoredAttention.call",
        made,
        kinds(
            query=floats(X, batch=False),
            value=floats(X),
            key=floats(X, length=True).optional(),
            query_mask=token_mask(),
            value_mask=token_mask(),
            key_mask=token_mask(),
            attention_mask=attention_mask(),
            query_positions=positions(POSITIONS),
            key_positions=positions(POSITIONS),
            query_segment_ids=positions(SEGMENTS),
            key_segment_ids=positions(SEGMENTS),
            return_attention_scores=_flag(True),
            return_log_probability=_flag(False),
            use_causal_mask=_flag(True),
        ),
        positional=("query", "value", "key"),
    )
    for score in ("dot", "cosine", "additive", "location"):
        yield Call(
            f"layers.ScoredAttention.call, {score}",
            lambda query, value, score=score: layers.ScoredAttention(score)(
                query, value
            ),
            kinds(
                query=floats(X, batch=False, width=score in ("dot", "cosine")),
                value=floats(X, width=score in ("dot", "cosine")).named("key"),
            ),
        )


def _feed_forward(folder):
    made = layers.FeedForward(4)
    made(X)
    yield Call(
        "layers.FeedForward",
        layers.FeedForward,
        kinds(
            intermediate_dim=size(4),
            activation=of_keras("relu"),
            gated=flag(False),
            dropout=rate(0.1),
            use_bias=flag(True),
            kernel_initializer=of_keras("glorot_uniform"),
            bias_initializer=of_keras("zeros"),
            gate_limit=positive(None).optional(),
        ),
        also={
            "limit without gate": (
                {"gated": False, "gate_limit": 1.0},
                ("gate_limit", "gated"),
            ),
        },
    )
    yield Call(
        "layers.FeedForward.call",
        made,
        kinds(inputs=_any_rank(floats(X, batch=False))),
        positional=("inputs",),
    )


def _mixture_of_experts(folder):
    made = layers.MixtureOfExperts(4, 3)
    made(X)
    yield Call(
        "layers.MixtureOfExperts",
        layers.MixtureOfExperts,
        kinds(
            intermediate_dim=size(4),
            num_experts=count(3),
            num_experts_per_tok=count(2),
            activation=of_keras("relu"),
            gated=flag(False),
            dropout=rate(0.1),
            use_bias=flag(True),
            router_aux_loss_coef=number(0.01, 0),
            kernel_initializer=of_keras("glorot_uniform"),
            bias_initializer=of_keras("zeros"),
            gate_limit=positive(None).optional(),
        ),
        also={
            "more than there are": (
                {"num_experts": 2, "num_experts_per_tok": 3},
                ("num_experts_per_tok", "num_experts"),
            ),
        },
    )
    yield Call(
        "layers.MixtureOfExperts.call",
        made,
        kinds(
            inputs=floats(X, batch=False),
            mask=token_mask(),
        ),
        positional=("inputs",),
    )


def _any_rank(kind):
    return kind.accepts(
        "any number of axes before the features", "rank_less", "rank_more"
    )


def _token_embedding(folder):
    made = layers.TokenEmbedding(12, 8)
    made(IDS)
    yield Call(
        "layers.TokenEmbedding",
        layers.TokenEmbedding,
        kinds(
            vocabulary_size=size(12),
            hidden_dim=size(8),
            scale=flag(True),
            pad_id=token_id(0, 12)
            .optional()
            .accepts("no id is padding", "below", "negative", "outside"),
            initializer=of_keras(None),
            logits_bias=flag(False),
        ),
    )
    yield Call(
        "layers.TokenEmbedding.call",
        made,
        kinds(token_ids=_ids_of_a_layer(IDS)),
        positional=("token_ids",),
    )
    yield Call(
        "layers.TokenEmbedding.logits",
        made.logits,
        kinds(hidden=_any_rank(floats(X, batch=False))),
    )


def _ids_of_a_layer(valid):
    return ids(valid, 12).accepts(
        "Keras's Sequential casts ids to floats; any rank",
        *("whole_floats", "rank_less", "rank_more", "scalar"),
    )


def _characters(folder):
    made = layers.CharacterEmbedding(12, 8)
    made(IDS[..., None])
    yield Call(
        "layers.CharacterEmbedding",
        layers.CharacterEmbedding,
        kinds(
            vocabulary_size=size(12),
            hidden_dim=size(8),
            character_dim=size(4),
            kernel_sizes=_sizes((2, 3)),
            filters=size(4),
            pad_id=token_id(0, 12),
        ),
    )
    kind = ids(IDS[..., None], 12)
    yield Call(
        "layers.CharacterEmbedding.call",
        made,
        kinds(
            character_ids=kind.accepts(
                "Keras's Sequential casts ids to floats", "whole_floats"
            )
        ),
        positional=("character_ids",),
    )


def _sizes(valid):
    kind = instance(valid).without("list", "own_type")
    return kind.plus(
        zero=(0,), negative=(2, -1), fraction=(1.5,), text=("2",), none=(None,)
    )


def _positional(folder):
    made = layers.PositionalEmbedding(
        "learned", max_sequence_length=6, name="table"
    )
    made(X)
    sinusoidal = layers.PositionalEmbedding()
    sinusoidal(X)
    yield Call(
        "layers.PositionalEmbedding",
        layers.PositionalEmbedding,
        kinds(
            kind=choice("learned"),
            layout=choice("interleaved"),
            max_sequence_length=size(4),
            initializer=of_keras("uniform"),
        ),
    )
    for name, layer in {"learned": made, "sinusoidal": sinusoidal}.items():
        yield Call(
            f"layers.PositionalEmbedding.call, {name}",
            layer,
            kinds(
                inputs=floats(X, batch=False),
                mask=token_mask(),
                positions=positions(POSITIONS),
            ),
            positional=("inputs",),
            also={}
            if name == "sinusoidal"
            else {
                "too long": (
                    {
                        "inputs": np.tile(X, (1, 2, 1)),
                        "mask": None,
                        "positions": None,
                    },
                    ("inputs", "max_sequence_length"),
                )
            },
        )


def _dropout(folder):
    yield Call(
        "layers.Dropout",
        layers.Dropout,
        kinds(
            rate=rate(0.1).accepts("Keras's Dropout takes it", "one"),
            noise_shape=fixed(None),
            seed=seed(0),
        ),
    )


def _glimpse(folder):
    made = layers.GlimpseSensor(2, 1)
    images = np.ones((2, 4, 4, 1), "float32")
    where = np.zeros((2, 2), "float32")
    made(images, where)
    yield Call(
        "layers.GlimpseSensor",
        layers.GlimpseSensor,
        kinds(
            patch_size=count(2).plus(huge=10**9, giant=2**70),
            num_patches=count(2).plus(huge=10**9, giant=2**70),
        ),
    )
    yield Call(
        "layers.GlimpseSensor.call",
        made,
        kinds(
            images=floats(images, width=False)
            .named("locations")
            .accepts("pixels may be integers", "integers", "bools"),
            locations=floats(where).accepts(
                "whole numbers are locations", "integers", "bools"
            ),
        ),
        positional=("images", "locations"),
    )


def _log_mel(folder):
    made = layers.LogMelSpectrogram(800, 8, 16, 5)
    samples = np.ones((2, 32), "float32")
    lengths = ids(np.array([32, 20], "int32"), batch=True)
    yield Call(
        "layers.LogMelSpectrogram",
        layers.LogMelSpectrogram,
        kinds(
            sampling_rate=size(800).named("min_freq"),
            sequence_stride=size(8),
            fft_length=size(16),
            num_mel_bins=size(5),
            min_freq=number(20.0, 0).plus(half=400, huge=1e300),
        ),
    )
    yield Call(
        "layers.LogMelSpectrogram.call",
        made,
        kinds(
            samples=floats(samples, batch=False, width=False)
            .named("lengths")
            .accepts("samples may be integers", "integers", "bools"),
            lengths=lengths.plus(
                negative=np.array([-1, 20]), too_long=np.array([33, 20])
            ).accepts("the default is None", "none"),
        ),
        positional=("samples", "lengths"),
    )


def _reinforce(folder):
    made = layers.Reinforce("mse")
    outputs = np.ones((2, 3), "float32")
    chosen = np.zeros((2, 3), "float32")
    made(outputs, outputs, chosen)
    yield Call(
        "layers.Reinforce",
        layers.Reinforce,
        kinds(loss=of_keras("mse").plus(none=None), momentum=rate(0.9)),
    )
    yield Call(
        "layers.Reinforce.call",
        made,
        kinds(
            prediction=floats(outputs, width=False).without("scalar"),
            target=floats(outputs, width=False)
            .without("scalar")
            .accepts("labels may be integers", "integers", "bools"),
            log_probability=floats(chosen, width=False).accepts(
                "any number of choices per example", "rank_less"
            ),
            sample_weight=floats(np.ones(2, "float32"))
            .without("rank_less")
            .accepts(
                "weights may be integers; the default is None",
                *("none", "integers", "bools"),
            ),
        ),
        positional=("prediction", "target", "log_probability"),
    )


def _rotary(folder):
    yield Call(
        "layers.RotaryPosition",
        layers.RotaryPosition,
        kinds(
            max_wavelength=positive(100.0),
            rotary_dim=count(4).optional().plus(odd=3),
            layout=choice("halves"),
            scaling=instance({"rope_type": "linear", "factor": 2.0})
            .optional()
            .plus(
                unknown={"rope_type": "rope"},
                missing={"rope_type": "linear"},
                no_type={"factor": 2.0},
                extra={"rope_type": "default", "factor": 2.0},
                text={"rope_type": "linear", "factor": "2"},
            ),
        ),
    )
    yield _check("RotaryPosition", layers.RotaryPosition(rotary_dim=4), 2, 4)


def _check(name, position, heads, width):
    return Call(
        f"layers.{name}.check",
        position.check,
        kinds(num_heads=heads, key_dim=width),
        also={}
        if name == "RotaryPosition"
        else {
            "other heads": ({"num_heads": heads + 1}, ("attention_position",)),
        },
    )


def _alibi(folder):
    yield Call(
        "layers.ALiBiPosition", layers.ALiBiPosition, kinds(num_heads=size(2))
    )
    yield _check("ALiBiPosition", layers.ALiBiPosition(2), 2, 4)


def _t5(folder):
    yield Call(
        "layers.T5Position",
        layers.T5Position,
        kinds(
            num_heads=size(2),
            num_buckets=size(8).plus(odd=7, one=1),
            max_distance=limited_distance(),
            bidirectional=flag(True),
            initializer=of_keras("uniform"),
        ),
    )
    yield _check("T5Position", layers.T5Position(2, 8, 16), 2, 4)


def limited_distance():
    """Kind of a distance that a table must fit."""
    return count(16).plus(huge=10**9, giant=2**40, past_int64=2**70)


def _transformer_xl(folder):
    for name in ("TransformerXLPosition", "XLNetPosition"):
        made = getattr(layers, name)
        yield Call(
            f"layers.{name}",
            made,
            kinds(
                num_heads=size(2),
                key_dim=size(4),
                hidden_dim=size(8).optional(),
                initializer=of_keras("glorot_uniform"),
                bias_initializer=of_keras("zeros"),
            ),
        )
        yield _check(name, made(2, 4), 2, 4)


def _named(calls, name):
    return lambda folder: [
        call
        for call in calls(folder)
        if call.name.split(".")[1].partition(",")[0] == name
    ]


CALLS = {
    "ALiBiPosition": _alibi,
    "AttentionPosition": "a base class whose constructor is that of Keras",
    "CharacterEmbedding": _characters,
    "Dropout": _dropout,
    "FeedForward": _feed_forward,
    "MixtureOfExperts": _mixture_of_experts,
    "GlimpseSensor": _glimpse,
    "LogMelSpectrogram": _log_mel,
    "MultiHeadAttention": _attention,
    "PositionalEmbedding": _positional,
    "Reinforce": _reinforce,
    "RotaryPosition": _rotary,
    "ScoredAttention": _scored,
    "T5Position": _t5,
    "TokenEmbedding": _token_embedding,
    "TransformerXLPosition": _named(_transformer_xl, "TransformerXLPosition"),
    "XLNetPosition": _named(_transformer_xl, "XLNetPosition"),
}
