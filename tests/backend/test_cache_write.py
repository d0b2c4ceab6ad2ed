"""`write_rows` against NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import compiled, write_rows
from tests.helpers.ops_cases import assert_close, normal, values

BUFFER = normal(2, 5, 3, seed=1)


def written(update, start):
    expected = BUFFER.copy()
    expected[:, start : start + update.shape[1]] = update
    return expected


@pytest.mark.parametrize("start", [0, 2, 4])
def test_writes_at_start(start):
    update = normal(2, 1, 3, seed=2)
    result = write_rows(
        ops.convert_to_tensor(BUFFER),
        ops.convert_to_tensor(update),
        ops.convert_to_tensor(start, dtype="int32"),
    )
    np.testing.assert_array_equal(values(result), written(update, start))


def test_writes_along_another_axis():
    update = normal(2, 5, 2, seed=2)
    expected = BUFFER.copy()
    expected[..., 1:] = update
    result = write_rows(
        ops.convert_to_tensor(BUFFER), ops.convert_to_tensor(update), 1, axis=2
    )
    np.testing.assert_array_equal(values(result), expected)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_writes_in_compiled_function(count):
    update, start = normal(2, count, 3, seed=2), 5 - count
    program = compiled(write_rows, [])
    result = program(
        ops.convert_to_tensor(BUFFER),
        ops.convert_to_tensor(update),
        ops.convert_to_tensor(start, dtype="int32"),
    )
    np.testing.assert_array_equal(values(result), written(update, start))


def test_casts_to_buffer_dtype():
    buffer = ops.zeros((1, 2), "bfloat16")
    result = write_rows(buffer, ops.ones((1, 1), "float32") / 3, 0)
    assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"
    assert_close(values(result), [[1 / 3, 0]], 1e-2)
