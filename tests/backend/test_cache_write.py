"""`write_rows` against NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import compiled, write_rows
from tests.helpers.ops_cases import assert_close, normal, values

BUFFER = normal(2, 5, 3, seed=1)
# Of the slots of a cache, which are never last on PyTorch.
AXES = [1] if keras.backend.backend() == "torch" else [1, 2]


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


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("axis", AXES)
def test_writes_at_another_start_in_each_row(heads, axis):
    """In the layouts of positions, and of the heads of keys."""
    starts = np.array([3, 0], "int32")
    buffer = normal(2 * heads, 5, 5, seed=1)
    shape = [2 * heads, 5, 5]
    shape[axis] = 2
    update = normal(*shape, seed=2)
    expected = buffer.copy()
    for row in range(2 * heads):
        start = starts[row // heads]
        slots = [slice(start, start + 2), slice(None)]
        expected[row][tuple(slots if axis == 1 else slots[::-1])] = update[row]

    def write(buffer, update, starts):
        return write_rows(buffer, update, starts, axis)

    for program in (write, compiled(write, [])):
        given = map(ops.convert_to_tensor, (buffer.copy(), update, starts))
        np.testing.assert_array_equal(values(program(*given)), expected)
