"""A small self-attention example worked by hand."""

import numpy as np
import pytest
from keras import ops

from keras_attn.ops import attend, scaled_dot_scores
from tests.helpers.ops_cases import (
    KERNELS,
    assert_close,
    assert_differs,
    values,
)

pytestmark = pytest.mark.every_backend

INPUTS = np.float32([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
FOR_KEY = np.float32([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
FOR_QUERY = np.float32([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
FOR_VALUE = np.float32([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])

OUTPUTS = [
    [1.9366, 6.6831, 1.5951],
    [2.0000, 7.9640, 0.0540],
    [1.9997, 7.7599, 0.3584],
]


def projected():
    """Returns query, key and value of one head, (1, 3, 1, 3)."""
    return [
        ops.convert_to_tensor((INPUTS @ kernel)[None, :, None])
        for kernel in (FOR_QUERY, FOR_KEY, FOR_VALUE)
    ]


def test_projections():
    query, key, value = (values(x)[0, :, 0].tolist() for x in projected())
    assert query == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert key == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert value == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]


def test_scores():
    query, key, _ = projected()
    scores = scaled_dot_scores(query, key, scale=1.0)
    assert values(scores)[0, 0].tolist() == [
        [2, 4, 4],
        [4, 16, 12],
        [4, 12, 10],
    ]


@pytest.mark.parametrize("kernel", KERNELS)
def test_outputs(kernel):
    output = attend(*projected(), scale=1.0, kernel=kernel)
    assert_close(values(output)[0, :, 0], OUTPUTS, 5e-5)
    scaled = attend(*projected(), kernel=kernel)
    assert_differs(values(scaled)[0, :, 0], OUTPUTS, 1e-2)


def test_weights():
    _, weights = attend(*projected(), scale=1.0, return_weights=True)
    power = np.exp([2.0, 4.0, 4.0])
    assert_close(values(weights)[0, 0, 0], power / power.sum())
