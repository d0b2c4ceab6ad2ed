"""Rollout and head measures, compared with loops over tokens."""

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


def test_a_fully_masked_token_keeps_only_itself():
    layer = drawn(3, 3)
    layer[:, :, 2] = 0
    maps = [AttentionMap("a", 0, (0, 1, 2), layer)] * 2
    found = rollout(maps)
    np.testing.assert_allclose(found[:, 2], [[0, 0, 1]] * 2)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)
    # Also without a residual connection.
    np.testing.assert_allclose(rollout(maps, 0.0)[:, 2], [[0, 0, 1]] * 2)


def test_head_measures_match_loops():
    weights = drawn(3, 5)
    weights[0, :, 1] = 0  # a fully masked query
    entropy, distance = head_entropy(weights), head_distance(weights)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 1, 1]], bool)
    on_padding = padding_attention(weights, mask)
    for b in range(2):
        for n in range(3):
            valid = [t for t in range(3) if weights[b, n, t].any()]
            spread = far = lost = 0.0
            for t in valid:
                for s in range(5):
                    w = weights[b, n, t, s]
                    spread -= w * math.log(w)
                    far += w * abs(t + 2 - s)
                    lost += 0 if mask[b, s] else w
            count = len(valid)
            np.testing.assert_allclose(
                [entropy[b, n], distance[b, n], on_padding[b, n]],
                [spread / count, far / count, lost / count],
                rtol=1e-5,
            )


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="`residual` must lie in"):
        rollout([drawn(3, 3)], 2)
    with pytest.raises(ValueError, match="self-attention layers"):
        rollout([drawn(3, 4)])
    with pytest.raises(ValueError, match="self-attention layers"):
        rollout([drawn(3, 3), drawn(4, 4)])
    with pytest.raises(ValueError, match="self-attention layers"):
        rollout([])
    with pytest.raises(ValueError, match="not negative"):
        rollout([-drawn(3, 3)])
    with pytest.raises(ValueError, match="`padding_mask` must have shape"):
        padding_attention(drawn(3, 4), np.ones((2, 3)))
