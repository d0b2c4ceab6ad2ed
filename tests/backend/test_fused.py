"""Fused kernel: obstacles, masks, windows and biases."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import fused_attention, fused_obstacle
from tests.helpers import reference
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import (
    BATCH,
    HEADS,
    KERNELS,
    LENGTH,
    assert_close,
    assert_differs,
    inputs,
    normal,
    values,
)

QUERY = keras.KerasTensor((2, 5, 4, 8))
if "fused" in KERNELS:
    HERE = pytest.mark.parametrize("key_heads", [4, 2, 1])
else:
    HERE = pytest.mark.skip(reason="this backend offers no fused attention")


def test_obstacles():
    free = fused_obstacle(QUERY, 8)
    if keras.backend.backend() == "torch":
        assert free is None
    else:
        assert "no fused attention" in free
    for options in ({"weights": True}, {"dropout": True}):
        assert fused_obstacle(QUERY, 8, **options) is not None


@HERE
def test_only_trainable_bias_is_rejected(key_heads):
    if keras.backend.backend() == "torch":
        bias = ops.ones((1, 4, 5, 5))
        assert fused_obstacle(QUERY, 8, bias=bias) is None
        bias.requires_grad_()
        assert "no gradient" in fused_obstacle(QUERY, 8, bias=bias)


@HERE
@pytest.mark.parametrize(
    "shape",
    [
        (BATCH, HEADS, LENGTH, LENGTH),
        (BATCH, 1, 1, LENGTH),
        (1, HEADS, LENGTH, 1),
        (1, 1, LENGTH, LENGTH),
    ],
)
def test_masks(shape, key_heads):
    arrays = inputs(key_heads=key_heads)
    mask = np.random.default_rng(0).random(shape) < 0.6
    mask[0, 0, 0] = False
    fully_masked = ~mask.any(-1, keepdims=True)
    seen = np.broadcast_to(~fully_masked, (BATCH, HEADS, LENGTH, 1))
    seen = seen.transpose(0, 2, 1, 3)
    masks = [ops.convert_to_tensor(array) for array in (mask, fully_masked)]
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    output = fused_attention(*tensors, *masks, scale=0.5)
    expected, _ = reference.scaled_dot_attention(*arrays, mask)
    assert np.isfinite(values(output)).all()
    assert_close(values(output) * seen, expected)
    wrong, _ = reference.scaled_dot_attention(*arrays)
    assert_differs(values(output) * seen, wrong)
    # The caller handles fully masked rows.
    cotangent = (normal(*expected.shape, seed=9) * seen).astype("float32")

    def loss(*tensors):
        output = fused_attention(*tensors, *masks, scale=0.5)
        return ops.sum(ops.multiply(output, cotangent))

    expected = reference.scaled_dot_attention_gradients(
        *arrays, cotangent, mask
    )
    for one, other in zip(gradient(loss, *arrays), expected, strict=False):
        assert_close(one, other)


@HERE
def test_causal(key_heads):
    arrays = inputs(key_heads=key_heads)
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    output = fused_attention(*tensors, causal=True, scale=0.5)
    mask = np.tril(np.ones((LENGTH, LENGTH), "bool"))
    assert_close(
        values(output), reference.scaled_dot_attention(*arrays, mask)[0]
    )


@HERE
@pytest.mark.parametrize(
    "length, window",
    [
        # Bands of 128, or of 256 for windows from 257; some end in one query.
        (5, 1),
        (5, 2),
        (5, 9),
        (128, 3),
        (129, 128),
        (257, 129),
        (300, 256),
        (513, 257),
        (600, 300),
        (530, 513),
        # Wider bands for a wide window.
        (1300, 1100),
    ],
)
def test_causal_window(length, window, key_heads):
    arrays = (
        normal(1, length, HEADS, 4, seed=1),
        normal(1, length, key_heads, 4, seed=2),
        normal(1, length, key_heads, 3, seed=3),
    )
    position = np.arange(length)
    distance = position[:, None] - position
    mask = (distance >= 0) & (distance < window)

    def attend(*tensors):
        return fused_attention(*tensors, causal=True, scale=0.5, window=window)

    tensors = [ops.convert_to_tensor(array) for array in arrays]
    expected, _ = reference.scaled_dot_attention(*arrays, mask)
    assert_close(values(attend(*tensors)), expected)
    cotangent = normal(*expected.shape, seed=9)

    def loss(*tensors):
        return ops.sum(ops.multiply(attend(*tensors), cotangent))

    expected = reference.scaled_dot_attention_gradients(
        *arrays, cotangent, mask
    )
    for one, other in zip(gradient(loss, *arrays), expected, strict=False):
        assert_close(one, other)

    def of_query(query):
        return loss(query, *tensors[1:])

    assert_close(gradient(of_query, arrays[0])[0], expected[0])


@HERE
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_causal_window_in_half_precision(dtype, key_heads):
    arrays = (
        normal(2, 300, heads, 4, seed=heads)
        for heads in (HEADS, key_heads, key_heads)
    )
    query, key, value = (ops.cast(array, dtype) for array in arrays)
    exact = [ops.cast(tensor, "float32") for tensor in (query, key, value)]
    output = fused_attention(query, key, value, causal=True, window=70)
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    expected = fused_attention(*exact, causal=True, window=70)
    assert_close(values(ops.cast(output, "float32")), values(expected), 2e-2)


@HERE
@pytest.mark.parametrize("width", [2, 4, 7])
@pytest.mark.parametrize("shape", [(1, HEADS, 1, LENGTH), (BATCH, 1, 5, 5)])
def test_bias_mask_and_value_width(shape, width, key_heads):
    query, key, value = inputs(key_heads=key_heads)
    arrays = query, key, normal(*value.shape[:3], width, seed=3)
    bias = normal(*shape, seed=5)
    mask = np.random.default_rng(0).random((BATCH, 1, 1, LENGTH)) < 0.6
    output = fused_attention(
        *(ops.convert_to_tensor(array) for array in arrays),
        ops.convert_to_tensor(mask),
        bias=ops.convert_to_tensor(bias),
        scale=0.5,
    )
    expected, _ = reference.scaled_dot_attention(*arrays, mask, bias)
    assert_close(values(output), expected)


@HERE
def test_float32_bias_is_not_rounded_to_half_precision(key_heads):
    # In bfloat16 both biases would round to multiples of 8.
    query = ops.zeros((1, 1, 1, 4), "bfloat16")
    value = ops.cast([[[[0.0] * 4], [[1.0] * 4]]], "bfloat16")
    bias = ops.convert_to_tensor(np.float32([[[[1024.0, 1024.0 + 3]]]]))
    output = fused_attention(query, query[:, [0, 0]], value, bias=bias)
    expected = 1 / (1 + np.exp(-3))
    assert_close(values(output), np.full((1, 1, 1, 4), expected), 1e-2)
