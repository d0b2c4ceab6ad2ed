"""Malformed calls of tensor functions."""

import keras
import numpy as np

from keras_attn import ops
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_layers import MASK, POSITIONS, SEGMENTS
from tests.malformed.values import (
    Kind,
    choice,
    count,
    flag,
    floats,
    function,
    instance,
    mask,
    number,
    positions,
    positive,
    size,
)

HEADS = np.random.default_rng(0).normal(size=(2, 4, 2, 4)).astype("float32")
PAIRS = np.ones((2, 1, 4, 4), bool)
SEE = ops.Visibility(causal=True)


def _see(**arguments):
    """Visibilities that do not fit two rows of four tokens."""
    return ops.Visibility(**arguments)


# Parts of a visibility that do not fit, and the argument of each.
MISFITS = {
    "attention_mask": np.ones((3, 1, 4, 4), bool),
    "query_positions": POSITIONS[:, :3],
    "key_positions": np.zeros((3, 4), "int32"),
}


def _heads(**rest):
    return floats(HEADS, **rest)


def _bias():
    kind = floats(np.zeros((2, 2, 4, 4), "float32"), width=True)
    # Broadcasts, or is converted.
    return kind.optional().accepts(
        "a bias that broadcasts",
        *("rank_less", "scalar", "integers", "number", "nan"),
    )


def _sinks():
    return floats(np.zeros(2, "float32")).optional()


def _attend(folder):
    arguments = kinds(
        query=_heads(),
        key=_heads(length=True),
        value=_heads(width=False, length=True),
        visibility=instance(SEE).optional(),
        bias=_bias(),
        scale=number(0.5).optional(),
        dropout=function(lambda weights: weights).optional(),
        return_weights=flag(True),
        kernel=choice("plain").optional(),
        soft_cap=positive(5.0).optional(),
        sinks=_sinks(),
    )
    misfits = {
        f"visibility of other {name}": (
            {"visibility": _see(**{name: value})},
            (name, "visibility"),
        )
        for name, value in MISFITS.items()
    }
    yield Call(
        "ops.attend",
        ops.attend,
        arguments,
        also=misfits
        | {
            "kernel without weights": (
                {"kernel": "fused"},
                ("kernel", "return_weights"),
            ),
            "blockwise kernel of other dropout": (
                {"kernel": "blockwise", "return_weights": False},
                ("kernel", "dropout"),
            ),
            "heads": (
                {"key": HEADS[:, :, [0, 0, 0]]},
                ("key", "query", "value"),
            ),
            "no floats": ({"query": HEADS.astype("int8")}, "query"),
        },
    )


def _plan(folder):
    yield Call(
        "ops.attention_plan",
        ops.attention_plan,
        kinds(
            query=_heads(batch=False, width=False),
            key=_heads(batch=False, width=False),
            visibility=instance(SEE).optional(),
            bias=_bias().accepts("the plan reads no shape", *_NO_SHAPE),
            dropout=function(lambda weights: weights).optional(),
            return_weights=flag(True),
            kernel=choice("plain").optional(),
            value=_heads(batch=False, width=False).optional(),
            soft_cap=positive(5.0).optional(),
            sinks=_sinks(),
        ),
        also={
            "kernel without weights": (
                {"kernel": "fused"},
                ("kernel", "return_weights"),
            ),
        },
    )


_NO_SHAPE = "rank_more", "batch", "wide", "narrow"


def _alone(valid):
    # Only the call knows the number of tokens.
    return positions(valid).without("batch", "long", "short")


def _visibility(folder):
    yield Call(
        "ops.Visibility",
        ops.Visibility,
        kinds(
            query_positions=_alone(POSITIONS),
            key_positions=_alone(POSITIONS),
            query_order=_alone(POSITIONS),
            key_order=_alone(POSITIONS),
            query_segment_ids=_alone(SEGMENTS),
            key_segment_ids=_alone(SEGMENTS),
            attention_mask=mask(PAIRS)
            .without("batch", "long", "short", "list_too_short")
            .optional(),
            causal=flag(True).accepts("a flag of 0 or 1", "zero", "one"),
            strict=flag(False).accepts("a flag of 0 or 1", "zero", "one"),
            window=count(2).optional(),
            padding=choice("any"),
            offset=count(None, -100)
            .optional()
            .accepts("a later query", "below", "negative", "very_negative"),
            slot_order=flag(False).accepts("a flag of 0 or 1", "zero", "one"),
            query_token_type_ids=_alone(SEGMENTS),
            key_token_type_ids=_alone(SEGMENTS),
        ),
    )


def _dropout(folder):
    yield Call(
        "ops.WeightDropout",
        ops.WeightDropout,
        kinds(rate=number(0.5, 0, 1).plus(zero=0.0, one=1.0), seed=None),
    )


def _bias_of_positions(folder):
    def plain(bias):
        return ops.attend(HEADS, HEADS, HEADS, bias=bias)

    yield Call(
        "ops.PositionBias",
        lambda function: plain(ops.PositionBias(function)),
        kinds(
            function=function(
                lambda parameters, query, key: keras.ops.zeros((1, 2, 4, 4))
            ).named("bias")
        ),
    )


def _capture(folder):
    def capture(layers, vectors):
        with ops.capture_weights(layers, vectors) as captured:
            return captured

    kind = choice("x").without("text", "list")
    yield Call(
        "ops.capture_weights",
        capture,
        kinds(
            layers=kind.optional()
            .accepts("a pattern", "empty", "array")
            .plus(
                pattern="(",
                patterns=["a", "*"],
                list_of_none=[None],
                list_of_bytes=[b"a"],
            ),
            vectors=Kind(None, {"list": [], "text": "a", "bool": True}),
        ),
    )


def _packed(folder):
    yield Call(
        "ops.packed_positions",
        ops.packed_positions,
        kinds(segments=_tokens().named("mask"), mask=mask(MASK).optional()),
    )


def _tokens():
    return positions(SEGMENTS).plus(none=None)


def _from_mask(folder):
    kind = mask(MASK).without("batch", "long", "short", "list_too_short")
    yield Call(
        "ops.positions_from_mask", ops.positions_from_mask, kinds(mask=kind)
    )


def _scores(folder):
    yield Call(
        "ops.scaled_dot_scores",
        ops.scaled_dot_scores,
        kinds(
            query=_heads(),
            key=_heads(),
            scale=number(0.5).optional(),
        ),
        also={"heads": ({"key": HEADS[:, :, [0, 0, 0]]}, ("key", "query"))},
    )


def _sinusoid(folder):
    yield Call(
        "ops.sinusoid",
        ops.sinusoid,
        kinds(
            positions=positions(POSITIONS).without("batch", "long", "short"),
            width=size(8).plus(odd=7, giant=2**20),
            layout=choice("halves"),
        ),
    )


def _shift(folder):
    scores = np.zeros((1, 2, 3, 4), "float32")
    yield Call(
        "ops.relative_shift",
        ops.relative_shift,
        kinds(
            scores=floats(scores, batch=False, width=False),
            keys=count(2, least=0).plus(more=5),
        ),
    )


CALLS = {
    "AttentionPlan": "a plain tuple that `attention_plan` returns",
    "PositionBias": _bias_of_positions,
    "Visibility": _visibility,
    "WeightDropout": _dropout,
    "attend": _attend,
    "attention_plan": _plan,
    "capture_weights": _capture,
    "packed_positions": _packed,
    "positions_from_mask": _from_mask,
    "relative_shift": _shift,
    "scaled_dot_scores": _scores,
    "sinusoid": _sinusoid,
}
