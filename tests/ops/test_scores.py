"""Scaled dot-product scores against a float64 loop."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops import scaled_dot_scores
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import (
    BATCH,
    HEADS,
    LENGTH,
    assert_close,
    assert_differs,
    inputs,
    values,
)

pytestmark = pytest.mark.every_backend


def loop(query, key, scale):
    shared = query.shape[2] // key.shape[2]
    scores = np.zeros(
        (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    )
    for b, n, t, s in np.ndindex(*scores.shape):
        products = query[b, t, n].astype("float64") * key[b, s, n // shared]
        scores[b, n, t, s] = scale * products.sum()
    return scores


@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_scores(key_heads, scale):
    query, key, _ = inputs(queries=3, key_heads=key_heads)
    scores = scaled_dot_scores(
        ops.convert_to_tensor(query), ops.convert_to_tensor(key), scale
    )
    assert_close(values(scores), loop(query, key, scale or 0.5))
    assert_differs(values(scores), loop(query, key, 0.25))


def test_scores_from_the_lecture():
    """Scores of 112 / sqrt(64) and 96 / sqrt(64) give .88 and .12."""
    query = np.ones((1, 1, 1, 64), "float32")
    key = np.repeat([[[112 / 64]], [[96 / 64]]], 64, -1)[None]
    scores = scaled_dot_scores(query, ops.cast(key, "float32"))
    assert values(scores).ravel().tolist() == [14.0, 12.0]
    weights = values(ops.softmax(scores, axis=-1)).ravel()
    assert weights.round(2).tolist() == [
        pytest.approx(0.88),
        pytest.approx(0.12),
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_scores_are_float32(dtype):
    query, key, _ = (ops.cast(30 * array, dtype) for array in inputs())
    scores = scaled_dot_scores(query, key)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    expected = loop(values(query), values(key), 0.5)
    assert_close(values(scores), expected, 1e-5)
    rounded = values(ops.cast(expected, dtype))
    assert_differs(rounded, expected)


def test_half_precision_scores_do_not_overflow():
    query = ops.full((1, 1, 1, 4), 6e4, "float16")
    score = values(scaled_dot_scores(query, query)).item()
    assert score == pytest.approx(2 * 6e4**2, rel=1e-3)


def test_gradients():
    query, key, _ = inputs(key_heads=2)
    weights = inputs()[0].sum(-1)
    assert weights.shape == (BATCH, LENGTH, HEADS)
    cotangent = weights.swapaxes(1, 2)[..., None]

    def loss(query, key):
        scores = scaled_dot_scores(query, key)
        return ops.sum(ops.multiply(scores, cotangent))

    for_query, for_key = gradient(loss, query, key)
    expected = np.zeros_like(query)
    for b, t, n in np.ndindex(*query.shape[:3]):
        expected[b, t, n] = 0.5 * weights[b, t, n] * key[b, :, n // 2].sum(0)
    assert_close(for_query, expected)
    expected = np.zeros_like(key)
    for b, t, n in np.ndindex(*query.shape[:3]):
        expected[b, :, n // 2] += 0.5 * weights[b, t, n] * query[b, t, n]
    assert_close(for_key, expected)
