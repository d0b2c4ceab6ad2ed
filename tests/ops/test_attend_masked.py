"""Masked inputs: exact zeros, and no NaN propagates."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops import Visibility, attend
from tests.helpers import reference
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import (
    BATCH,
    CASES,
    HEADS,
    KERNELS,
    LENGTH,
    assert_close,
    inputs,
    normal,
    spread,
    values,
    visibility,
)

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_dtype = pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16"]
)
PADDED = [name for name, case in CASES.items() if "key_positions" in case]
FULLY_MASKED = [
    name for name, case in CASES.items() if not spread(case).any(-1).all()
]


def output_and_gradients(arrays, see, kernel, dtype="float32"):
    """Returns the output, and the gradients of its sum of squares."""
    arrays = [ops.cast(array, dtype) for array in arrays]

    def mixed(query, key, value):
        return attend(query, key, value, see, kernel=kernel)

    def loss(query, key, value):
        output = mixed(query, key, value)
        return ops.sum(ops.cast(output * output, "float32"))

    gradients = gradient(loss, *arrays)
    return values(mixed(*arrays)), [
        np.asarray(array, "float32") for array in gradients
    ]


@every_kernel
@every_dtype
@pytest.mark.parametrize("name", FULLY_MASKED)
def test_fully_masked_rows_are_zero(name, dtype, kernel):
    """Per head: a row may be fully masked in one head only."""
    case = CASES[name]
    output, gradients = output_and_gradients(
        inputs(), visibility(case), kernel, dtype
    )
    empty = ~spread(case).any(-1).swapaxes(1, 2)
    assert empty.any()
    assert (output[empty] == 0).all()
    assert (gradients[0][empty] == 0).all()
    assert (output[~empty] != 0).all()
    unseen = ~spread(case).any(2).swapaxes(1, 2)
    assert (gradients[1][unseen] == 0).all()
    assert (gradients[2][unseen] == 0).all()
    for array in (output, *gradients):
        assert np.isfinite(array).all()


@pytest.mark.every_backend
@every_kernel
def test_row_fully_masked_in_one_head(kernel):
    mask = np.ones((BATCH, HEADS, LENGTH, LENGTH), "bool")
    mask[1, 2, 3] = False
    case = {"attention_mask": mask}
    arrays = inputs()
    output, _ = output_and_gradients(arrays, visibility(case), kernel)
    expected, _ = reference.scaled_dot_attention(*arrays, mask)
    assert_close(output, expected)
    assert list(zip(*np.nonzero((output == 0).all(-1)), strict=True)) == [
        (1, 3, 2)
    ]


@every_kernel
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", PADDED)
def test_padding_values_have_no_effect(name, poison, kernel):
    case = CASES[name]
    query, key, value = inputs()
    zeroed = [query.copy(), key.copy(), value.copy()]
    poisoned = [query.copy(), key.copy(), value.copy()]
    for number, field in enumerate(("query_positions", *["key_positions"] * 2)):
        padding = case.get(field, np.zeros((BATCH, LENGTH))) < 0
        zeroed[number][padding] = 0
        poisoned[number][padding] = poison
    see = visibility(case)
    clean = output_and_gradients(zeroed, see, kernel)
    dirty = output_and_gradients(poisoned, see, kernel)
    np.testing.assert_array_equal(dirty[0], clean[0])
    for one, other in zip(dirty[1], clean[1], strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(one).all()


@pytest.mark.every_backend
@every_kernel
def test_visible_nan_propagates(kernel):
    query, key, value = inputs()
    value[0, 0] = np.nan
    output, _ = output_and_gradients((query, key, value), Visibility(), kernel)
    assert np.isnan(output[0]).all()


@pytest.mark.every_backend
@pytest.mark.parametrize("name", FULLY_MASKED)
def test_weights_of_fully_masked_rows_are_zero(name):
    case = CASES[name]
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    _, weights = attend(*arrays, visibility(case), return_weights=True)
    weights = values(weights)
    assert (weights[~spread(case)] == 0).all()


@pytest.mark.parametrize("name", ["holes", "two paddings", "no token"])
def test_nan_in_masked_bias(name):
    case = CASES[name]
    bias = normal(BATCH, HEADS, LENGTH, LENGTH)
    bias[~spread(case)] = np.nan
    see = visibility(case)

    def loss(bias, *arrays):
        return ops.sum(attend(*arrays, see, bias=bias))

    for array in gradient(loss, bias, *inputs()):
        assert np.isfinite(array).all()


@every_kernel
@every_dtype
def test_masked_scores_may_be_large(dtype, kernel):
    """A masked key with a far higher score than any visible one."""
    query = ops.full((1, 1, 1, 4), 30.0, dtype)
    key = ops.cast([[[[-90.0] * 4], [[90.0] * 4]]], dtype)
    value = ops.cast([[[[1.0]], [[2.0]]]], dtype)
    see = Visibility(attention_mask=ops.convert_to_tensor([[[[True, False]]]]))
    output = attend(query, key, value, see, kernel=kernel)
    assert values(output).item() == 1.0
    assert keras.backend.standardize_dtype(output.dtype) == dtype
