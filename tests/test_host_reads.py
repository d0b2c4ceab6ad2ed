"""Forward passes read no tensor on the host, as if on an accelerator."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops, tree

import keras_attn
from keras_attn import blocks, decoding, layers, models
from keras_attn.backend import hashed_bits, inspection
from keras_attn.ops import Visibility, WeightDropout, attend
from keras_attn.ops.positions import positions_from_mask
from keras_attn.testing import host_reads
from keras_attn.training import Perplexity, SequenceCrossentropy, TokenAccuracy
from tests.helpers.cases import once
from tests.helpers.weight_gradients import layer_gradients

X = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
IDS = np.array([[5, 6, 7, 2], [8, 2, 0, 0]], "int32")
MASK = IDS != 0
FRAMES = np.random.default_rng(0).normal(size=(2, 9, 5)).astype("float32")
IMAGES = np.arange(180, dtype="float32").reshape(2, 5, 6, 3)
POSITIONS = np.array([[0, 1, 2, 3], [0, 1, -1, -1]], "int32")
SEGMENTS = np.array([[0, 0, 1, 1], [0, 0, 0, 0]], "int32")
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.1,
}
BLOCK = {"num_heads": 2, "intermediate_dim": 12, "dropout": 0.1}


def attention(**kwargs):
    return layers.MultiHeadAttention(2, 4, dropout=0.1, seed=1, **kwargs)


def rematerialized():
    with keras.RematScope("full"):
        return blocks.EncoderBlock(**BLOCK)


class Sublayer(keras.layers.Layer):
    """A sublayer without weights in a `Residual`."""

    def build(self, inputs_shape):
        self.residual = blocks.Residual(dropout=0.1)
        self.residual.build(inputs_shape)

    def call(self, x, training=None):
        return self.residual.post(x, self.residual.pre(x), training=training)


def classifier():
    return models.SequenceClassifier(models.Bert(11, **SIZES), 1)


# Name: constructor, arguments of a call, keyword arguments of a call.
PACKED = {"token_ids": IDS, "packing_ids": SEGMENTS + 1}
CASES = {
    "ALiBiPosition": (
        lambda: attention(attention_position=layers.ALiBiPosition(2)),
        (X, X),
        {"query_mask": MASK, "value_mask": MASK},
    ),
    "CharacterEmbedding": (
        lambda: layers.CharacterEmbedding(11, 8),
        (IDS[None],),
        {},
    ),
    "Dropout": (lambda: layers.Dropout(0.1, seed=1), (X,), {}),
    "FeedForward": (lambda: layers.FeedForward(12, dropout=0.1), (X,), {}),
    "MixtureOfExperts": (
        lambda: layers.MixtureOfExperts(12, 3, dropout=0.1),
        (X,),
        {"mask": MASK},
    ),
    "GlimpseSensor": (
        lambda: layers.GlimpseSensor(2),
        (X[..., None], X[:, 0, :2]),
        {},
    ),
    "LogMelSpectrogram": (
        lambda: layers.LogMelSpectrogram(800, 8, 16, 5),
        (X.reshape(2, 32),),
        {"lengths": np.array([32, 20], "int32")},
    ),
    "MultiHeadAttention": (
        lambda: attention(causal=True),
        (X, X),
        {
            "query_positions": POSITIONS,
            "key_positions": POSITIONS,
            "query_segment_ids": SEGMENTS,
            "key_segment_ids": SEGMENTS,
            "attention_mask": np.ones((4, 4), "bool"),
        },
    ),
    "MultiHeadAttention, window": (
        lambda: layers.MultiHeadAttention(2, 4, sliding_window=2),
        (X, X),
        {"query_mask": MASK, "value_mask": MASK, "use_causal_mask": True},
    ),
    "PositionalEmbedding": (
        layers.PositionalEmbedding,
        (X,),
        {"positions": POSITIONS},
    ),
    "PositionalEmbedding, learned": (
        lambda: layers.PositionalEmbedding("learned", max_sequence_length=4),
        (X,),
        {"mask": MASK},
    ),
    "Reinforce": (
        lambda: layers.Reinforce("mse"),
        (X, X, X[..., 0]),
        {},
    ),
    "RotaryPosition": (
        lambda: attention(attention_position=layers.RotaryPosition()),
        (X, X),
        {"query_positions": POSITIONS, "key_positions": POSITIONS},
    ),
    **{
        f"RotaryPosition, {scaling['rope_type']}": (
            lambda scaling=scaling: attention(
                attention_position=layers.RotaryPosition(scaling=scaling)
            ),
            (X, X),
            {"query_positions": POSITIONS, "key_positions": POSITIONS},
        )
        for scaling in (
            {"rope_type": "linear", "factor": 2.0},
            {
                "rope_type": "dynamic",
                "factor": 2.0,
                "original_max_position_embeddings": 2,
            },
            {
                "rope_type": "longrope",
                "attention_factor": 1.5,
                "original_max_position_embeddings": 2,
                "short_factor": [1.0, 2.0],
                "long_factor": [2.0, 4.0],
            },
        )
    },
    "ScoredAttention": (
        lambda: layers.ScoredAttention(hard="gumbel", seed=1),
        (X, X),
        {"query_mask": MASK, "value_mask": MASK},
    ),
    "ScoredAttention, location": (
        lambda: layers.ScoredAttention("location", max_sequence_length=4),
        (X, X),
        {"query_positions": POSITIONS, "key_positions": POSITIONS},
    ),
    "ScoredAttention, predictive": (
        lambda: layers.ScoredAttention(
            "cosine", local="predictive", dropout=0.1, seed=1
        ),
        (X, X),
        {"query_mask": MASK, "value_mask": MASK},
    ),
    "T5Position": (
        lambda: attention(attention_position=layers.T5Position(2, 8, 6)),
        (X, X),
        {"query_mask": MASK, "value_mask": MASK},
    ),
    "TokenEmbedding": (lambda: layers.TokenEmbedding(11, 8), (IDS,), {}),
    "TransformerXLPosition": (
        lambda: attention(
            attention_position=layers.TransformerXLPosition(2, 4)
        ),
        (X, X),
        {"query_positions": POSITIONS, "key_positions": POSITIONS},
    ),
    "XLNetPosition": (
        lambda: attention(attention_position=layers.XLNetPosition(2, 4)),
        (X, X),
        {},
    ),
    "DecoderBlock": (lambda: blocks.DecoderBlock(**BLOCK), (X, X), {}),
    "EncoderBlock, options": (
        lambda: blocks.EncoderBlock(
            **BLOCK,
            normalization="rms_norm",
            normalize_first=True,
            normalize_output=True,
            use_parallel_residual=True,
            qk_norm="all_heads",
            attention_soft_cap=5.0,
            use_sinks=True,
            use_qkv_bias=False,
            layer_scale=0.1,
            stochastic_depth=0.5,
            num_experts=3,
        ),
        (X,),
        {"mask": MASK},
    ),
    "EncoderBlock, as the first of ModernBERT": (
        lambda: blocks.EncoderBlock(
            **BLOCK,
            normalization="bias_free_layer_norm",
            normalize_first=True,
            skip_first_norm=True,
        ),
        (X,),
        {"mask": MASK},
    ),
    "EncoderBlock": (
        lambda: blocks.EncoderBlock(**BLOCK),
        (X,),
        {"positions": POSITIONS},
    ),
    "EncoderBlock, rematerialized": (rematerialized, (X,), {}),
    "Residual": (Sublayer, (X,), {}),
    "SegmentBlock": (lambda: blocks.SegmentBlock(**BLOCK), (X,), {}),
    "TwoStreamBlock": (lambda: blocks.TwoStreamBlock(**BLOCK), (X,), {}),
    "Bert": (
        lambda: models.Bert(11, **SIZES),
        ({"token_ids": IDS, "segment_ids": SEGMENTS, "padding_mask": MASK},),
        {},
    ),
    "BertPretrainer": (
        lambda: models.BertPretrainer(models.Bert(11, **SIZES)),
        ({"token_ids": IDS, "mask_positions": IDS[:, :1] % 4},),
        {},
    ),
    "Encoder": (
        lambda: models.Encoder(11, character_vocabulary_size=11, **SIZES),
        ({"token_ids": IDS, "character_ids": IDS[..., None]},),
        {},
    ),
    "Encoder, packed": (
        lambda: models.Encoder(11, **SIZES),
        (PACKED,),
        {},
    ),
    "GPT": (
        lambda: models.GPT(11, max_sequence_length=4, **SIZES),
        (IDS,),
        {},
    ),
    "GPT, packed": (
        lambda: models.GPT(11, max_sequence_length=4, **SIZES),
        (PACKED,),
        {},
    ),
    "Transformer, packed": (
        lambda: models.Transformer(11, **SIZES),
        ((PACKED, PACKED),),
        {},
    ),
    "ImageCaptioner": (
        lambda: models.ImageCaptioner(11, (5, 6, 3), hidden_dim=8, filters=2),
        ((IMAGES, IDS),),
        {},
    ),
    "VisionTransformer": (
        lambda: models.VisionTransformer(
            (4, 6, 3), patch_size=2, num_classes=3, **SIZES
        ),
        (IMAGES[:, :4],),
        {},
    ),
    "ClassifierFreeGuidance": (
        lambda: models.ClassifierFreeGuidance(models.GPT(11, **SIZES)),
        (IDS,),
        {},
    ),
    "MultipleChoice": (
        lambda: models.MultipleChoice(classifier()),
        (IDS[None],),
        {},
    ),
    "RecurrentSeq2Seq": (
        lambda: models.RecurrentSeq2Seq(
            11, hidden_dim=8, num_layers=1, scheduled_sampling=0.5
        ),
        ((IDS, IDS),),
        {},
    ),
    "ReplacedTokenDetector": (
        lambda: models.ReplacedTokenDetector(models.Encoder(11, **SIZES)),
        (IDS,),
        {},
    ),
    "Roberta": (lambda: models.Roberta(11, **SIZES), (IDS,), {}),
    "SequenceClassifier": (classifier, (IDS,), {}),
    "SequenceClassifier, transform": (
        lambda: models.SequenceClassifier(
            models.Encoder(11, **SIZES), 2, transform=True
        ),
        (IDS,),
        {},
    ),
    "SpanExtractor": (
        lambda: models.SpanExtractor(models.Encoder(11, **SIZES)),
        (IDS,),
        {},
    ),
    "SpeechTransformer": (
        lambda: models.SpeechTransformer(
            11, 5, 2, num_decoder_layers=1, **SIZES
        ),
        ((FRAMES, IDS),),
        {},
    ),
    "TokenClassifier": (
        lambda: models.TokenClassifier(models.Encoder(11, **SIZES), 3),
        (IDS,),
        {},
    ),
    "Transformer": (
        lambda: models.Transformer(11, **SIZES),
        ((IDS, IDS),),
        {},
    ),
    "TransformerXL": (
        lambda: models.TransformerXL(
            11, memory_length=2, stateful_batch_size=2, **SIZES
        ),
        ({"token_ids": IDS, "document_starts": SEGMENTS == 1},),
        {},
    ),
    "XLNet": (
        lambda: models.XLNet(11, memory_length=2, **SIZES),
        (
            {
                "token_ids": IDS,
                "padding_mask": MASK,
                "order": np.array([[2, 0, 3, 1]] * 2, "int32"),
                "target_positions": IDS[:, :2] % 4,
            },
        ),
        {},
    ),
}


# On JAX, operations are compiled one by one; models contain all the layers.
RUN = [
    name
    for name, (make, _, _) in CASES.items()
    if keras.backend.backend() != "jax" or isinstance(make(), keras.Model)
]


def tensors(nest):
    return tree.map_structure(
        lambda x: ops.convert_to_tensor(x) if isinstance(x, np.ndarray) else x,
        nest,
    )


def test_every_layer_block_and_model_is_listed():
    abstract = {"AttentionPosition", "GenerativeModel"}
    public = {
        name
        for package in (layers, blocks, models)
        for name in package.__all__
        if inspect.isclass(getattr(package, name))
        and issubclass(getattr(package, name), keras.layers.Layer)
    }
    listed = {name.partition(",")[0] for name in CASES}
    assert listed == public - abstract


@pytest.mark.parametrize("name", RUN)
def test_calls_read_nothing(name, monkeypatch):
    make, args, kwargs = CASES[name]
    layer = make()
    args, kwargs = tensors((args, kwargs))
    modes = [{}]
    if "training" in inspect.signature(layer.call).parameters:
        modes = [{"training": False}, {"training": True}]
    if not layer.built:
        layer(*args, **kwargs)
    for mode in modes:
        with host_reads(keras_attn.__path__) as found:
            layer(*args, **kwargs, **mode)
        assert not found, mode


@pytest.mark.gpu
@pytest.mark.parametrize("name", RUN)
def test_calls_transfer_nothing_from_a_gpu(name):
    """JAX itself refuses reads; PyTorch cannot tell them from uploads."""
    if keras.backend.backend() != "jax":
        pytest.skip("only JAX can refuse transfers in one direction")
    import jax

    make, args, kwargs = CASES[name]
    layer = make()
    args, kwargs = tensors((args, kwargs))
    with jax.transfer_guard_device_to_host("disallow"):
        layer(*args, **kwargs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.Transformer(11, **SIZES),
        *once([lambda: models.GPT(11, max_sequence_length=9, **SIZES)]),
    ],
)
def test_decode_steps_read_nothing(make, monkeypatch):
    model = make()
    ids = ops.convert_to_tensor(IDS)
    with host_reads(keras_attn.__path__) as found:
        state = model.start_decoding(ids, 3)
        for _ in range(2):
            logits, state = model.decode_step(state.tokens, state)
    assert logits.shape[-1] == 11
    assert not found


RULES = [
    decoding.RepetitionPenalty(1.2),
    decoding.PresencePenalty(0.5),
    decoding.FrequencyPenalty(0.5),
    decoding.NoRepeatNGram(2),
    decoding.Temperature(0.7),
    decoding.MinP(0.1),
    decoding.TypicalP(0.9),
    decoding.EpsilonCutoff(0.1),
    decoding.LogitBias({5: -1.0, (6, 7): 2.0}),
    decoding.AllowedTokens(lambda tokens, *_: tokens[..., -1:] >= 0),
    decoding.AllowedSequences([[5, 6], [5, 7]]),
    decoding.ForcedWords([[5, 6]]),
]


def test_rules_read_nothing(monkeypatch):
    spec = decoding.SearchSpec(8, 0, 1, (2,))
    scores, tokens, step = tensors(
        (
            np.zeros((2, 1, 11), "float32"),
            np.array([[[-1, -1, 4, 5]], [[3, 4, 6, 7]]], "int32"),
            np.array(1, "int32"),
        )
    )
    with host_reads(keras_attn.__path__) as found:
        for rule in RULES:
            rule.apply(scores, tokens, step, spec)
    assert not found
    names = {
        name
        for name in decoding.__all__
        if isinstance(getattr(decoding, name), type)
        and issubclass(getattr(decoding, name), decoding.LogitsRule)
    }
    assert names == {type(rule).__name__ for rule in RULES} | {"LogitsRule"}


@pytest.mark.parametrize(
    "make", [SequenceCrossentropy, TokenAccuracy, Perplexity]
)
def test_losses_and_metrics_read_nothing(make, monkeypatch):
    measure = make()
    labels, logits = tensors((IDS % 8, X))
    with host_reads(keras_attn.__path__) as found:
        if isinstance(measure, keras.losses.Loss):
            measure(labels, logits)
        else:
            measure.update_state(labels, logits)
    assert not found


@pytest.mark.parametrize("name", ["GPT", "EncoderBlock, rematerialized"])
def test_gradients_read_nothing(name, monkeypatch):
    make, args, kwargs = CASES[name]
    layer = make()
    args, kwargs = tensors((args, kwargs))
    layer(*args, **kwargs)

    def loss():
        return ops.mean(ops.square(layer(*args, training=True, **kwargs)))

    with host_reads(keras_attn.__path__) as found:
        _, gradients = layer_gradients(layer, loss)
    # The conversion of the gradients to NumPy is not below the library.
    assert len(gradients) == len(layer.trainable_weights)
    assert not found


VISIBILITIES = {
    "padded": {},
    "causal": {"causal": True},
    "window": {"window": 2},
    "causal window": {"causal": True, "window": 2},
}


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", VISIBILITIES)
def test_blockwise_attention_reads_nothing(name, padded, monkeypatch):
    x = ops.convert_to_tensor(X.reshape(2, 4, 2, 4))
    rule = dict(VISIBILITIES[name])
    if padded:
        positions = positions_from_mask(ops.convert_to_tensor(MASK))
        rule |= {"query_positions": positions, "key_positions": positions}
    see = Visibility(**rule)
    expected = ops.convert_to_numpy(attend(x, x, x, see, kernel="plain"))
    # Smaller blocks than any real call has.
    monkeypatch.setattr("keras_attn.ops.blockwise.BLOCK", 1)
    monkeypatch.setattr("keras_attn.ops.blockwise._SMALLEST", 1)
    drop = WeightDropout(0.5, ops.convert_to_tensor(np.int32([3, 4])))
    with host_reads(keras_attn.__path__) as found:
        output = attend(x, x, x, see, kernel="blockwise")
        attend(x, x, x, see, dropout=drop, kernel="blockwise")
    assert not found
    np.testing.assert_allclose(
        ops.convert_to_numpy(output), expected, rtol=1e-5, atol=1e-6
    )


def murmur(bits):
    """The finalizer of MurmurHash3 on Python numbers."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ bits >> shift) * factor % 2**32
    return bits ^ bits >> 16


def test_hashed_bits():
    if keras.backend.backend() != "torch":
        pytest.skip("PyTorch's random numbers")
    import torch

    first = murmur((2**32 - 3 + murmur(4)) % 2**32)
    second = murmur(4 ^ first)
    expected = [
        murmur((murmur(index ^ first) + second) % 2**32) for index in range(6)
    ]
    found = hashed_bits.hashed_bits((2, 3), torch.tensor([-3, 4]))
    assert found.shape == (2, 3)
    assert found.ravel().tolist() == expected
    other = hashed_bits.hashed_bits((2, 3), torch.tensor([-3, 4]), block=1)
    assert not (found == other).any()


def test_random_numbers_without_reading_the_seed(monkeypatch):
    monkeypatch.setattr(inspection, "is_on_host", lambda tensor: False)
    drop = layers.Dropout(0.25, seed=7)
    ones = ops.ones((64, 1024))
    first, second = (
        ops.convert_to_numpy(drop(ones, training=True)) for _ in range(2)
    )
    rate = (first == 0).mean()
    assert abs(rate - 0.25) < 5 * np.sqrt(0.25 * 0.75 / first.size)
    np.testing.assert_allclose(first[first != 0], 1 / 0.75, rtol=1e-5)
    both = ((first == 0) & (second == 0)).mean()
    assert abs(both - 0.0625) < 5 * np.sqrt(0.0625 / first.size)
    again = layers.Dropout(0.25, seed=7)(ones, training=True)
    np.testing.assert_array_equal(ops.convert_to_numpy(again), first)
    draws = ops.convert_to_numpy(
        hashed_bits.uniform((64, 1024), keras.random.SeedGenerator(3), 1e-30)
    )
    assert draws.dtype == "float32" and 0 < draws.min() and draws.max() < 1
    # The empirical distribution function; Kolmogorov's bound at 1e-6.
    gap = np.sort(draws.ravel()) - np.arange(draws.size) / draws.size
    assert np.abs(gap).max() < 2.7 / np.sqrt(draws.size)


def test_reads_are_found(monkeypatch):
    """A check that reads a value is listed, with its line."""
    ids = ops.convert_to_tensor(IDS)
    with host_reads(keras_attn.__path__) as found:
        inspection.concrete(ids, anywhere=True)
    assert found and "backend/inspection.py" in found[0]
