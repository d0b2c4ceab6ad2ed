"""`gather_rows` and `take_along_axis` against NumPy."""

import numpy as np
import pytest
from keras import ops

from keras_attn.backend import compiled, gather_rows, take_along_axis

X = np.arange(24, dtype="float32").reshape(4, 3, 2)


@pytest.mark.parametrize("rows", [2, [3, 0, 0], [[1], [3]]], ids=str)
def test_rows(rows):
    rows = np.asarray(rows, "int32")
    program = compiled(gather_rows, [])
    found = program(ops.convert_to_tensor(X), ops.convert_to_tensor(rows))
    np.testing.assert_array_equal(ops.convert_to_numpy(found), X[rows])


def test_entries_of_each_row():
    indices = np.array([[[1], [0], [1]]] * 4, "int32")
    program = compiled(take_along_axis, [])
    found = program(ops.convert_to_tensor(X), ops.convert_to_tensor(indices))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found), np.take_along_axis(X, indices, -1)
    )
