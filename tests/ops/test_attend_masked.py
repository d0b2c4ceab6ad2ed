"""What is hidden stays hidden: exact zeros, and NaN that goes nowhere."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops import Visibility, attend
from tests import reference
from tests.gradients import gradient
from tests.ops.cases import (
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
BLIND = [name for name, case in CASES.items() if not spread(case).any(-1).all()]


def output_and_gradients(arrays, see, kernel, dtype="float32"):
    """Of the sum of the squares of the output."""
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
@pytest.mark.parametrize("name", BLIND)
def test_a_row_that_sees_nothing_is_zero(name, dtype, kernel):
    """Head by head: a row may be empty in one head only."""
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


@every_kernel
def test_a_row_empty_in_one_head_zeroes_that_head_only(kernel):
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
def test_what_is_no_token_reaches_nothing(name, poison, kernel):
    case = CASES[name]
    query, key, value = inputs()
    zeroed = [query.copy(), key.copy(), value.copy()]
    poisoned = [query.copy(), key.copy(), value.copy()]
    for number, field in enumerate(("query_positions", *["key_positions"] * 2)):
        hidden = case.get(field, np.zeros((BATCH, LENGTH))) < 0
        zeroed[number][hidden] = 0
        poisoned[number][hidden] = poison
    see = visibility(case)
    clean = output_and_gradients(zeroed, see, kernel)
    dirty = output_and_gradients(poisoned, see, kernel)
    np.testing.assert_array_equal(dirty[0], clean[0])
    for one, other in zip(dirty[1], clean[1], strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(one).all()


@every_kernel
def test_the_poison_would_be_seen(kernel):
    query, key, value = inputs()
    value[0, 0] = np.nan
    output, _ = output_and_gradients((query, key, value), Visibility(), kernel)
    assert np.isnan(output[0]).all()


@pytest.mark.parametrize("name", BLIND)
def test_weights_of_a_row_that_sees_nothing(name):
    case = CASES[name]
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    _, weights = attend(*arrays, visibility(case), return_weights=True)
    weights = values(weights)
    assert (weights[~spread(case)] == 0).all()


@pytest.mark.parametrize("name", ["holes", "two paddings", "no token"])
def test_nan_in_a_hidden_bias(name):
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
def test_hidden_scores_need_not_be_small(dtype, kernel):
    """A hidden key that fits far better than any visible one."""
    query = ops.full((1, 1, 1, 4), 30.0, dtype)
    key = ops.cast([[[[-90.0] * 4], [[90.0] * 4]]], dtype)
    value = ops.cast([[[[1.0]], [[2.0]]]], dtype)
    see = Visibility(attention_mask=ops.convert_to_tensor([[[[True, False]]]]))
    output = attend(query, key, value, see, kernel=kernel)
    assert values(output).item() == 1.0
    assert keras.backend.standardize_dtype(output.dtype) == dtype
