"""Local attention of Luong et al.: local-m and local-p."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.helpers import reference
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers.attention_cases import (
    EXPLICIT,
    HOLES,
    KEY,
    LEFT,
    QUERY,
    QUERY_MASK,
    VALUE,
    B,
    D,
    S,
    T,
)
from tests.layers.scored_cases import expected_of, make

pytestmark = pytest.mark.every_backend

ALL = np.ones((B, T, S), "bool")
LONG = 12


def with_weights(layer, *args, **kwargs):
    outputs = layer(*args, return_attention_scores=True, **kwargs)
    return [values(x) for x in outputs]


@pytest.mark.parametrize("window", [1, 2])
def test_monotonic_window(window):
    """The window extends equally before and after the position."""
    layer = make("general", local="monotonic", window=window)
    output, weights = with_weights(layer, QUERY, VALUE, KEY)
    gap = np.abs(np.arange(T)[:, None] - np.arange(S))
    expected, expected_weights = expected_of(layer, gap <= window)
    assert_close(output, expected)
    assert_close(weights, expected_weights)
    assert_close(weights.sum(-1), np.ones((B, T)))


def test_monotonic_counts_tokens():
    """Source and target have different padding."""
    layer = make("general", local="monotonic", window=1)
    output = values(
        layer(QUERY, VALUE, KEY, query_mask=QUERY_MASK, value_mask=LEFT)
    )
    for row in range(B):
        queries, keys = QUERY_MASK[row], LEFT[row]
        gap = np.abs(np.arange(queries.sum())[:, None] - np.arange(keys.sum()))
        alone, _ = expected_of(
            layer,
            gap <= 1,
            QUERY[row : row + 1, queries],
            VALUE[row : row + 1, keys],
            KEY[row : row + 1, keys],
        )
        assert_close(output[row, queries], alone[0])
    by_slot = np.abs(np.arange(T)[:, None] - np.arange(S)) <= 1
    mask = QUERY_MASK[:, :, None] & LEFT[:, None] & by_slot
    assert_differs(output, expected_of(layer, mask)[0])


@pytest.mark.parametrize("window", [1, 2, 10])
@pytest.mark.parametrize("masked", [False, True])
def test_predictive_equals_its_equation(window, masked):
    layer = make("general", local="predictive", window=window)
    mask, call_kwargs = ALL, {}
    if masked:
        call_kwargs = {
            "attention_mask": EXPLICIT[:, 0],
            "value_mask": HOLES,
            "query_mask": QUERY_MASK,
        }
        mask = QUERY_MASK[:, :, None] & HOLES[:, None] & EXPLICIT[:, 0]
    output, weights = with_weights(layer, QUERY, VALUE, KEY, **call_kwargs)
    expected, expected_weights = expected_of(
        layer,
        mask,
        key_positions=reference.positions_from_mask(HOLES) if masked else None,
    )
    assert_close(output, expected)
    assert_close(weights, expected_weights)
    assert (weights.sum(-1) < 1).all()


def test_predictive_weights_peak_at_the_center():
    """If all scores are equal, the center has the largest weight."""
    layer = make("general", local="predictive", window=3)
    score, vector, matrix = layer.get_weights()
    layer.set_weights([0 * score, vector, matrix])
    value, key = normal(B, LONG, 7), normal(B, LONG, 5)
    _, weights = with_weights(layer, QUERY, value, key)
    fraction = 1 / (1 + np.exp(-np.tanh(QUERY @ matrix) @ vector))
    # The nearest of the positions 0, 1, ..., 11.
    nearest = np.minimum(np.rint(LONG * fraction), LONG - 1)
    np.testing.assert_array_equal(weights.argmax(-1), nearest)
    assert (((weights > 0).sum(-1) >= 3) & ((weights > 0).sum(-1) <= 7)).all()


def test_predictive_gradients():
    """Compared with central differences of the loops."""
    layer = make("additive", local="predictive", window=4)
    upstream = normal(B, T, 7, seed=5)
    (at_query,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x, VALUE, KEY), upstream), QUERY
    )
    start = [QUERY, *layer.get_weights()]
    gradients = [at_query, *at_weights.values()]

    def moved(step, chosen, direction):
        query, *weights = (
            array + step * direction if n == chosen else array
            for n, array in enumerate(start)
        )
        mask, nearness = reference.predicted_window(
            query, weights[-2:], ALL, layer.window
        )
        output, _ = reference.scored_attention(
            "additive", query, KEY, VALUE, weights[:-2], mask, None, nearness
        )
        return np.sum(output * upstream)

    for chosen, array in enumerate(start):
        direction = normal(*array.shape, dtype="float64")
        ends = (moved(step, chosen, direction) for step in (1e-5, -1e-5))
        slope = np.subtract(*ends) / 2e-5
        actual = np.sum(gradients[chosen] * direction)
        np.testing.assert_allclose(actual, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("local", ["monotonic", "predictive"])
def test_later_keys_do_not_change_outputs(local):
    """With a causal mask, the length S ends at the query."""
    layer = make("general", local=local, window=2, key=normal(B, S, D))
    x = normal(B, S, D, seed=3)
    value = normal(B, S, 7, seed=4)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "bool")
    before = values(layer(x, value, x, use_causal_mask=True))
    x, value = (
        array + (np.arange(S) > 2)[:, None].astype("float32")
        for array in (x, value)
    )
    after = values(layer(x, value, x, use_causal_mask=True, key_mask=mask))
    assert_close(after[:, :3], before[:, :3])
    assert_differs(after[:, 3:], before[:, 3:])


@pytest.mark.parametrize("local", [None, "monotonic", "predictive"])
@pytest.mark.parametrize("score", ["additive", "general", "location"])
def test_float64(score, local):
    if keras.backend.backend() == "jax":
        pytest.skip("JAX has no float64 by default")
    layer = make(score, local=local, window=2, dtype="float64")
    query, value, key = (
        ops.convert_to_tensor(x, "float64") for x in (QUERY, VALUE, KEY)
    )
    output, weights = layer(query, value, key, return_attention_scores=True)
    assert output.dtype == weights.dtype == query.dtype
    mask = None
    if local == "monotonic":
        mask = np.abs(np.arange(T)[:, None] - np.arange(S)) <= 2
    expected, expected_weights = expected_of(layer, mask)
    assert_close(values(output), expected)
    assert_close(values(weights), expected_weights)


def test_window_over_all_keys_equals_global_attention():
    near, far = (
        make("general", local="monotonic", window=S),
        make("general"),
    )
    far.set_weights(near.get_weights())
    assert_close(
        values(near(QUERY, VALUE, KEY)), values(far(QUERY, VALUE, KEY))
    )
    assert ops.is_tensor(near(QUERY, VALUE, KEY))
