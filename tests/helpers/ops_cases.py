"""Test cases for `Visibility`, with mutants, and attention inputs.

A case is a dict of NumPy arrays and plain values: the arguments of
`keras_attn.ops.Visibility` and, except `padding`, of `reference.visible`.
"""

import keras
import numpy as np
from keras import ops

from keras_attn.backend import fused_obstacle
from keras_attn.ops import Visibility
from tests.helpers import reference

BATCH, LENGTH, HEADS = 2, 5, 4

_RIGHT = np.int32([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]])
_LEFT = np.int32([[-1, -1, 0, 1, 2], [0, 1, 2, 3, 4]])
_HOLES = np.int32([[0, -1, 1, 2, -1], [-1, 0, -1, 1, 2]])
_OTHER = np.int32([[0, 1, 2, -1, 3], [0, 1, 2, 3, -1]])
_SEGMENTS = np.int32([[0, 0, 0, 1, 1], [0, 1, 1, 1, 2]])
_PACKED = np.int32([[0, 0, 0, 0, 1], [0, 0, 0, 1, 0]])
_ORDER = np.int32([[3, 0, 4, 1, 2], [1, 4, 0, 2, 3]])
_MASK = np.random.default_rng(3).random((BATCH, HEADS, LENGTH, LENGTH)) < 0.6
_OPEN = np.random.default_rng(4).random(_MASK.shape) < 0.8


def _same(positions, **rest):
    return {"query_positions": positions, "key_positions": positions, **rest}


CASES = {
    "right padding": _same(_RIGHT, padding="right"),
    "left padding": _same(_LEFT, padding="any"),
    "holes": _same(_HOLES, padding="any"),
    "no token": _same(np.full((BATCH, LENGTH), -1, "int32"), padding="any"),
    "padded memory": {"key_positions": _HOLES, "padding": "any"},
    "padded queries": {"query_positions": _HOLES, "padding": "any"},
    "two paddings": {"query_positions": _LEFT, "key_positions": _HOLES},
    "causal": {"causal": True},
    "causal, right padding": _same(_RIGHT, padding="right", causal=True),
    "causal, left padding": _same(_LEFT, padding="any", causal=True),
    "causal, holes": _same(_HOLES, padding="any", causal=True),
    "causal, shuffled": _same(_ORDER, causal=True),
    "causal, cached": {
        "query_positions": _RIGHT + 2,
        "key_positions": _OTHER,
        "causal": True,
    },
    "strictly causal": {"causal": True, "strict": True},
    "window": {"window": 2},
    "window, holes": _same(_HOLES, padding="any", window=2),
    "causal window": {"causal": True, "window": 2},
    "causal window, right padding": _same(
        _RIGHT, padding="right", causal=True, window=2
    ),
    "packed": {"query_segment_ids": _SEGMENTS, "key_segment_ids": _SEGMENTS},
    "packed, causal": {
        "query_segment_ids": _SEGMENTS,
        "key_segment_ids": _SEGMENTS,
        "causal": True,
    },
    "order": {"query_order": _ORDER, "key_order": _ORDER, "causal": True},
    "strict order": {
        "query_order": _ORDER,
        "key_order": _ORDER,
        "causal": True,
        "strict": True,
    },
    "two orders": {"query_order": _RIGHT, "key_order": _ORDER, "causal": True},
    "mask": {"attention_mask": _MASK[:1, :1]},
    "mask of rows": {"attention_mask": _MASK[:, :1]},
    "mask of heads": {"attention_mask": _MASK[:1]},
    "mask of rows and heads": {"attention_mask": _MASK},
    "everything": {
        "query_positions": _RIGHT,
        "key_positions": _OTHER,
        "query_order": _ORDER,
        "key_order": _ORDER,
        "query_segment_ids": _PACKED,
        "key_segment_ids": _PACKED,
        "attention_mask": _OPEN,
        "causal": True,
        "window": 2,
        "padding": "any",
    },
}

KERNELS = ["plain", "blockwise"]
if not fused_obstacle(keras.KerasTensor((BATCH, LENGTH, HEADS, 4)), 4):
    KERNELS.append("fused")


def visibility(case):
    """Converts a case to a `Visibility`; shared arrays stay shared."""
    tensors = {}
    fields = {}
    for name, value in case.items():
        if isinstance(value, np.ndarray):
            if id(value) not in tensors:
                tensors[id(value)] = ops.convert_to_tensor(value)
            value = tensors[id(value)]
        fields[name] = value
    return Visibility(**fields)


def spread(case, heads=HEADS, lengths=(LENGTH, LENGTH)):
    """Converts a case to a mask (B, N, T, S) by the loop of `reference`."""
    rule = {name: case[name] for name in case if name != "padding"}
    return reference.visible(BATCH, *lengths, heads=heads, **rule)


def mutants(case):
    """Returns incorrect variants of a case, by name."""
    wrong = {}
    for what in ("positions", "order", "segment_ids"):
        pair = f"query_{what}", f"key_{what}"
        if case.get(pair[0]) is case.get(pair[1]) is not None:
            wrong[f"{what} ignored"] = {**case, **dict.fromkeys(pair)}
    for name in ("query_positions", "key_positions", "query_order"):
        unlike = case.get("query_positions") is not case.get("key_positions")
        if name in case and (unlike or "order" in name):
            wrong[f"{name} ignored"] = {**case, name: None}
    for name in ("causal", "strict", "window", "attention_mask"):
        if name in case:
            wrong[f"{name} ignored"] = {
                **case,
                name: False if case[name] is True else None,
            }
    if case.get("causal"):
        strict = not case.get("strict", False)
        wrong["causal off by one"] = {**case, "strict": strict}
    if case.get("window"):
        wrong["window too wide"] = {**case, "window": case["window"] + 1}
        wrong["window too narrow"] = {**case, "window": case["window"] - 1}
    mask = case.get("attention_mask")
    if mask is not None:
        wrong["mask transposed"] = {
            **case,
            "attention_mask": np.swapaxes(mask, -1, -2),
        }
    return wrong


MUTANTS = [(name, how) for name, case in CASES.items() for how in mutants(case)]


def normal(*shape, seed=0, dtype="float32"):
    """Returns standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def inputs(queries=LENGTH, keys=LENGTH, heads=HEADS, key_heads=HEADS, width=4):
    """Returns query, key and value; values are two features wider."""
    return (
        normal(BATCH, queries, heads, width, seed=1),
        normal(BATCH, keys, key_heads, width, seed=2),
        normal(BATCH, keys, key_heads, width + 2, seed=3),
    )


def values(tensor):
    """Converts to NumPy, half precision to float32."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if dtype in ("bfloat16", "float16"):
        tensor = ops.cast(tensor, "float32")
    return ops.convert_to_numpy(tensor)


def assert_close(actual, expected, tolerance=1e-5):
    """Asserts equal shapes, and equal values up to rounding."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def assert_differs(actual, expected, tolerance=1e-3):
    """Asserts equal shapes and a difference beyond rounding."""
    assert np.shape(actual) == np.shape(expected)
    assert np.max(np.abs(actual - expected)) > tolerance
