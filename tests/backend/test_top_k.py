"""`top_k` against NumPy's stable sort."""

import numpy as np
import pytest
from keras import ops

from keras_attn.backend import argmax_first, compiled, top_k

RNG = np.random.default_rng(0)
ROWS = {
    "random": RNG.normal(size=(5, 60)),
    "equal": np.zeros((2, 300)),
    # Integers of both signs, each several times.
    "ties": RNG.integers(-4, 4, (3, 2, 50)),
    "signs of zero": np.where(RNG.random((2, 40)) < 0.5, -0.0, 0.0),
    "chunked": RNG.integers(-4, 4, (2, 2, 997)),
    "chunked without padding": RNG.normal(size=(3, 800)),
    "tie at the cutoff": np.array([[1.0, 3.0, 2.0, 2.0, 2.0, 0.0]]),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("count", [1, 3, 6])
def test_top_k_matches_stable_sort(name, count):
    rows = ROWS[name].astype("float32")
    expected = np.argsort(-rows, axis=-1, kind="stable")[..., :count]
    program = compiled(lambda x: top_k(x, count), [])
    values, indices = program(ops.convert_to_tensor(rows))
    np.testing.assert_array_equal(ops.convert_to_numpy(indices), expected)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(values),
        np.take_along_axis(rows, expected, axis=-1),
    )
    assert ops.convert_to_numpy(indices).dtype == "int32"


@pytest.mark.parametrize("name", ROWS)
def test_argmax_first_matches_numpy(name):
    rows = ROWS[name].astype("float32")
    found = compiled(argmax_first, [])(ops.convert_to_tensor(rows))
    expected = np.argmax(rows, axis=-1)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)
    assert ops.convert_to_numpy(found).dtype == "int32"


def test_few_finite_entries():
    rows = np.full((1, 1000), -np.inf, "float32")
    rows[0, [999, 3, 500]] = [1, 0, 1]
    values, indices = top_k(ops.convert_to_tensor(rows), 4)
    assert ops.convert_to_numpy(values)[0].tolist() == [1, 1, 0, -np.inf]
    indices = ops.convert_to_numpy(indices)[0].tolist()
    assert indices[:3] == [500, 999, 3]
    assert len(set(indices)) == 4 and max(indices) < 1000


def test_count_equal_to_row_length():
    rows = np.float32([[-np.inf, 2, -np.inf, 2, -1]])
    values, indices = top_k(ops.convert_to_tensor(rows), 5)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(values), [[2, 2, -1, -np.inf, -np.inf]]
    )
    assert ops.convert_to_numpy(indices)[0, :3].tolist() == [1, 3, 4]
    assert sorted(ops.convert_to_numpy(indices)[0].tolist()) == [0, 1, 2, 3, 4]
