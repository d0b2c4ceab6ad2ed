"""Rollout and what heads do, against loops over tokens."""

import math

import numpy as np
import pytest

from keras_attn.explain import (
    AttentionMap,
    head_distance,
    head_entropy,
    padding_attention,
    rollout,
)


def drawn(queries, keys, rows=2, heads=3, seed=0):
    weights = np.random.default_rng(seed).random((rows, heads, queries, keys))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("residual", [0.5, 0.2])
def test_rollout_is_the_product_of_the_layers(residual):
    layers = [drawn(4, 4, seed=number) for number in range(3)]
    found = rollout(layers, residual)
    assert found.shape == (2, 4, 4)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)
    for row in range(2):
        came_from = np.eye(4)
        for layer in layers:
            mixed = np.zeros((4, 4))
            for t in range(4):
                for s in range(4):
                    mean = sum(layer[row, n, t, s] for n in range(3)) / 3
                    mixed[t, s] = residual * (t == s) + (1 - residual) * mean
            came_from = mixed @ came_from
        np.testing.assert_allclose(found[row], came_from, atol=1e-6)


def test_a_token_that_sees_nothing_stays_what_it_is():
    layer = drawn(3, 3)
    layer[:, :, 2] = 0
    maps = [AttentionMap("a", 0, (0, 1, 2), layer)] * 2
    found = rollout(maps)
    np.testing.assert_allclose(found[:, 2], [[0, 0, 1]] * 2)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)
    # Nor without a residual connection.
    np.testing.assert_allclose(rollout(maps, 0.0)[:, 2], [[0, 0, 1]] * 2)


def test_heads_by_loops():
    weights = drawn(3, 5)
    weights[0, :, 1] = 0  # a query that sees nothing
    entropy, distance = head_entropy(weights), head_distance(weights)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 1, 1]], bool)
    share = padding_attention(weights, mask)
    for b in range(2):
        for n in range(3):
            seeing = [t for t in range(3) if weights[b, n, t].any()]
            spread = far = lost = 0.0
            for t in seeing:
                for s in range(5):
                    w = weights[b, n, t, s]
                    spread -= w * math.log(w)
                    far += w * abs(t + 2 - s)
                    lost += 0 if mask[b, s] else w
            count = len(seeing)
            np.testing.assert_allclose(
                [entropy[b, n], distance[b, n], share[b, n]],
                [spread / count, far / count, lost / count],
                rtol=1e-5,
            )


def test_bad_arguments():
    with pytest.raises(ValueError, match="`residual` must lie in"):
        rollout([drawn(3, 3)], 2)
    with pytest.raises(ValueError, match="layers of self-attention"):
        rollout([drawn(3, 4)])
    with pytest.raises(ValueError, match="layers of self-attention"):
        rollout([drawn(3, 3), drawn(4, 4)])
    with pytest.raises(ValueError, match="layers of self-attention"):
        rollout([])
    with pytest.raises(ValueError, match="none below 0"):
        rollout([-drawn(3, 3)])
    with pytest.raises(ValueError, match="`padding_mask` must have shape"):
        padding_attention(drawn(3, 4), np.ones((2, 3)))
