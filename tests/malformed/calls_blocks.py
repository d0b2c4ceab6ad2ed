"""Malformed calls of blocks."""

import numpy as np

from keras_attn import blocks, layers
from keras_attn.ops import Visibility
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_layers import (
    MASK,
    POSITIONS,
    SEGMENTS,
    X,
    attention_mask,
    token_mask,
)
from tests.malformed.values import (
    choice,
    count,
    flag,
    floats,
    instance,
    number,
    of_keras,
    positions,
    positive,
    rate,
    size,
)

OPTIONS = {"num_heads": 2, "intermediate_dim": 12}
_RAGGED = MASK[:, :3]


def block_options():
    """Kinds of the options of all blocks."""
    return kinds(
        num_heads=size(2),
        intermediate_dim=size(12),
        key_dim=size(4).optional(),
        num_key_value_heads=count(1).optional().plus(no_divisor=3),
        dropout=rate(0.1),
        attention_dropout=rate(0.1),
        activation_dropout=rate(0.1),
        activation=of_keras("relu"),
        gated=flag(False),
        normalize_first=flag(False),
        epsilon=positive(1e-5),
        use_bias=flag(True),
        sliding_window=count(2).optional(),
        normalization=choice("rms_norm"),
        normalize_output=flag(False),
        use_parallel_residual=flag(False),
        qk_norm=choice("head").optional(),
        attention_soft_cap=positive(5.0).optional(),
        use_sinks=flag(False),
        layer_scale=positive(0.1).optional(),
        stochastic_depth=rate(0.0),
        gate_limit=positive(None).optional(),
        use_qkv_bias=flag(None).optional(),
        skip_first_norm=flag(False),
        num_experts=count(3).optional(),
        num_experts_per_tok=count(2),
        router_aux_loss_coef=number(0.01, 0),
        kernel_initializer=of_keras("glorot_uniform"),
        bias_initializer=of_keras("zeros"),
        attention_position=instance(layers.RotaryPosition()).optional(),
    )


def _constructor(name):
    return Call(
        f"blocks.{name}",
        getattr(blocks, name),
        block_options(),
        also={
            "no arguments fit": (
                {"num_heads": 3, "num_key_value_heads": 2},
                ("num_heads", "num_key_value_heads"),
            )
        },
    )


def _tokens():
    return kinds(
        mask=token_mask(),
        attention_mask=attention_mask(),
        positions=positions(POSITIONS),
        segment_ids=positions(SEGMENTS),
    )


def _encoder(folder):
    made = blocks.EncoderBlock(**OPTIONS)
    made(X)
    yield _constructor("EncoderBlock")
    yield Call(
        "blocks.EncoderBlock.call",
        made,
        {**kinds(inputs=floats(X, batch=False)), **_tokens()},
        positional=("inputs",),
    )
    yield _not_built("EncoderBlock")


def _not_built(name, **options):
    return Call(
        f"blocks.{name}.call, not built",
        lambda inputs: getattr(blocks, name)(**(OPTIONS | options))(inputs),
        kinds(inputs=floats(X, batch=False, width=False)),
        also={
            "width and heads": (
                {"inputs": np.ones((2, 4, 7), "float32")},
                ("num_heads", "inputs", "hidden_dim"),
            )
        },
    )


def _decoder(folder):
    made = blocks.DecoderBlock(**OPTIONS)
    made(X, X)
    alone = blocks.DecoderBlock(**OPTIONS)
    alone(X)
    yield _constructor("DecoderBlock")
    yield Call(
        "blocks.DecoderBlock.call",
        made,
        {
            **kinds(
                inputs=floats(X).named("mask", "positions"),
                memory=floats(X).named("memory_positions"),
            ),
            **_tokens(),
            **kinds(
                memory_mask=token_mask(),
                memory_positions=positions(POSITIONS),
                memory_segment_ids=positions(SEGMENTS),
            ),
        },
        positional=("inputs", "memory"),
    )
    yield Call(
        "blocks.DecoderBlock.call, without memory",
        alone,
        kinds(inputs=floats(X, batch=False)),
        also={
            "memory": ({"memory": X}, "memory"),
            "memory_mask": ({"memory_mask": MASK}, "memory_mask"),
            "memory_positions": (
                {"memory_positions": POSITIONS},
                "memory_positions",
            ),
            "memory_segment_ids": (
                {"memory_segment_ids": SEGMENTS},
                "memory_segment_ids",
            ),
        },
    )
    yield _not_built("DecoderBlock")


def _residual(folder):
    made = blocks.Residual(name="around")
    made.build((None, None, 8))
    yield Call(
        "blocks.Residual",
        blocks.Residual,
        kinds(
            dropout=rate(0.1),
            normalize_first=flag(False),
            epsilon=positive(1e-5),
            normalization=choice("layer_norm"),
            normalize_output=flag(False),
            normalize_input=flag(True),
            layer_scale=positive(0.1).optional(),
            stochastic_depth=rate(0.0),
        ),
    )
    first = blocks.Residual(normalize_first=True)
    first.build((None, None, 8))
    yield Call(
        "blocks.Residual.pre",
        first.pre,
        kinds(x=floats(X, batch=False).accepts("any rank", *_ANY_RANK)),
    )
    yield Call(
        "blocks.Residual.post",
        made.post,
        kinds(
            x=floats(X, length=True),
            output=floats(X, length=True),
        ),
    )


_ANY_RANK = "rank_less", "rank_more"


def _segment(folder):
    made = blocks.SegmentBlock(**OPTIONS)
    made(X)
    yield _constructor("SegmentBlock")
    yield Call(
        "blocks.SegmentBlock.call",
        made,
        kinds(
            inputs=floats(X).named("past", "mask"),
            past=floats(X).optional(),
            mask=token_mask(),
            past_mask=token_mask(),
            segment_ids=positions(SEGMENTS),
            past_segment_ids=positions(SEGMENTS),
        ),
        positional=("inputs", "past"),
        also={
            "past_mask without past": (
                {
                    "past": None,
                    "segment_ids": None,
                    "past_segment_ids": None,
                },
                "past_mask",
            ),
            "past_segment_ids without past": (
                {"past": None, "past_mask": None},
                "past_segment_ids",
            ),
        },
    )
    yield _not_built("SegmentBlock")


def _two_streams(folder):
    made = blocks.TwoStreamBlock(**OPTIONS)
    made(X)
    see = Visibility()
    yield _constructor("TwoStreamBlock")
    yield Call(
        "blocks.TwoStreamBlock.call",
        made,
        kinds(
            inputs=floats(X).named("past"),
            queries=floats(X).optional(),
            past=floats(X).optional(),
            content_visibility=instance(see).optional(),
            query_visibility=instance(see),
        ),
        positional=("inputs", "queries"),
        also={
            "mask of the content": (
                {
                    "content_visibility": Visibility(
                        attention_mask=np.ones((3, 1, 4, 8), bool)
                    )
                },
                ("content_visibility", "attention_mask"),
            ),
        },
    )


CALLS = {
    "DecoderBlock": _decoder,
    "EncoderBlock": _encoder,
    "Residual": _residual,
    "SegmentBlock": _segment,
    "TwoStreamBlock": _two_streams,
}
