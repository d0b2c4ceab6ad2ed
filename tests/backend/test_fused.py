"""The fused kernel: the reasons against it, and its masks."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import fused_attention, fused_obstacle
from tests import reference
from tests.gradients import gradient
from tests.ops.cases import (
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

NO_FACTS = {"bias": False, "weights_wanted": False, "dropout": False}
if "fused" in KERNELS:
    HERE = pytest.mark.parametrize("key_heads", [4, 2, 1])
else:
    HERE = pytest.mark.skip(reason="this backend offers no fused attention")


def test_reasons():
    free = fused_obstacle(**NO_FACTS)
    if keras.backend.backend() == "torch":
        assert free is None
    else:
        assert keras.backend.backend() in free
    for fact in NO_FACTS:
        assert fused_obstacle(**{**NO_FACTS, fact: True}) is not None


def test_refuses_where_there_is_none():
    if "fused" in KERNELS:
        return
    tensors = [ops.convert_to_tensor(array) for array in inputs()]
    with pytest.raises(ValueError, match="offers no fused attention"):
        fused_attention(*tensors)


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
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    output = fused_attention(*tensors, ops.convert_to_tensor(mask), scale=0.5)
    expected, _ = reference.scaled_dot_attention(*arrays, mask)
    assert_close(values(output), expected)
    wrong, _ = reference.scaled_dot_attention(*arrays)
    assert_differs(values(output), wrong)
    cotangent = normal(*expected.shape, seed=9)

    def loss(*tensors):
        output = fused_attention(
            *tensors, ops.convert_to_tensor(mask), scale=0.5
        )
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
