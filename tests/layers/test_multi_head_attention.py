"""MultiHeadAttention compared with float64 loops; argument checks."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import fused_obstacle
from keras_attn.layers import MultiHeadAttention
from tests.helpers import reference
from tests.helpers.contract import check_layer
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers.attention_cases import (
    CALLS,
    KEY,
    OWN_CALLS,
    QUERY,
    VALUE,
    B,
    D,
    N,
    S,
    T,
    make,
    mutants,
)

FUSED = not fused_obstacle(keras.KerasTensor((1, 2, 1, 4)), 4)


def expected_of(layer, mask=None, key=KEY):
    """Computes output and weights with loops."""
    arrays = layer.get_weights()
    if layer.num_key_value_heads != layer.num_heads:
        # Shared heads equal separate heads with equal projections.
        group = layer.num_heads // layer.num_key_value_heads
        arrays[2:6] = [np.repeat(x, group, axis=-2) for x in arrays[2:6]]
    return reference.multi_head_attention(
        QUERY,
        VALUE,
        arrays,
        key=key,
        mask=mask,
        use_bias=layer.use_bias,
        use_gate=layer.use_gate,
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("name", [*CALLS, *OWN_CALLS])
def test_masks(name):
    kwargs, call_kwargs, mask = {**CALLS, **OWN_CALLS}[name]
    layer = make(**kwargs)
    output = values(layer(QUERY, VALUE, KEY, **call_kwargs))
    again, weights = layer(
        QUERY, VALUE, KEY, return_attention_scores=True, **call_kwargs
    )
    assert_close(values(again), output, 1e-6)
    expected, expected_weights = expected_of(layer, mask)
    assert_close(output, expected)
    assert_close(values(weights), expected_weights)
    for wrong in mutants(mask):
        expected, expected_weights = expected_of(layer, wrong)
        assert_differs(output, expected)
        assert_differs(values(weights), expected_weights)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"use_gate": True, "use_bias": False},
        {"use_gate": True, "value_dim": 5, "output_shape": 7},
        {"num_heads": 4, "num_key_value_heads": 2, "value_dim": 5},
        {"num_key_value_heads": 1},
    ],
)
def test_weight_shapes(kwargs):
    mask = reference.visible(B, T, S, causal=True)
    layer = make(causal=True, **kwargs)
    output, weights = layer(QUERY, VALUE, KEY, return_attention_scores=True)
    expected, expected_weights = expected_of(layer, mask)
    assert_close(values(output), expected)
    assert_close(values(weights), expected_weights)
    unmasked, _ = expected_of(layer)
    assert_differs(values(output), unmasked)


def test_output_with_several_axes():
    layer = make(output_shape=(2, 3))
    mask = CALLS["query mask"][2]
    output = values(layer(QUERY, VALUE, KEY, **CALLS["query mask"][1]))
    assert output.shape == (B, T, 2, 3)
    arrays = layer.get_weights()
    arrays[-2:] = arrays[-2].reshape(N, 3, 6), arrays[-1].reshape(6)
    expected, _ = reference.multi_head_attention(
        QUERY, VALUE, arrays, key=KEY, mask=mask
    )
    assert_close(output, expected.reshape(B, T, 2, 3))


def test_key_defaults_to_value():
    layer = make(key=VALUE)
    output = values(layer(QUERY, VALUE))
    assert_close(output, values(layer(QUERY, VALUE, VALUE)))
    assert_close(output, expected_of(layer, key=VALUE)[0])


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["query mask", "everything"])
def test_gradients(name):
    """Compared with central differences of the float64 loops."""
    kwargs, call_kwargs, mask = CALLS[name]
    layer = make(**kwargs)
    upstream = normal(B, T, D, seed=5)

    def loss(query, value, key):
        return weighted_sum(layer(query, value, key, **call_kwargs), upstream)

    at_inputs, at_weights = layer_gradients(layer, loss, QUERY, VALUE, KEY)
    gradients = [*at_inputs, *at_weights.values()]
    arrays = [QUERY, VALUE, KEY, *layer.get_weights()]

    def moved(step):
        query, value, key, *weights = (
            array + step * direction
            for array, direction in zip(arrays, directions, strict=True)
        )
        output, _ = reference.multi_head_attention(
            query, value, weights, key=key, mask=mask
        )
        return np.sum(output * upstream)

    for chosen in range(len(arrays)):
        directions = [np.zeros(array.shape) for array in arrays]
        directions[chosen] = normal(*arrays[chosen].shape, dtype="float64")
        slope = (moved(1e-4) - moved(-1e-4)) / 2e-4
        actual = np.sum(gradients[chosen] * directions[chosen])
        np.testing.assert_allclose(actual, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.every_backend
def test_dropout():
    layer = make(dropout=0.5, seed=1)
    inference = values(layer(QUERY, VALUE, KEY))
    assert_close(inference, expected_of(layer)[0])
    assert_close(values(layer(QUERY, VALUE, KEY, training=False)), inference)
    output, weights = layer(
        QUERY, VALUE, KEY, training=True, return_attention_scores=True
    )
    assert_differs(values(output), inference)
    assert_close(values(weights), expected_of(layer)[1])


@pytest.mark.every_backend
def test_flash_attention():
    plain = make(flash_attention=False)
    expected = values(plain(QUERY, VALUE, KEY))
    forced = make(flash_attention=True)
    if FUSED:
        assert_close(values(forced(QUERY, VALUE, KEY)), expected, 1e-6)
        return
    with pytest.raises(ValueError, match="fused kernel was forced"):
        forced(QUERY, VALUE, KEY)


@pytest.mark.one_backend
def test_flash_attention_returns_no_scores():
    layer = make(flash_attention=True)
    message = "`return_attention_scores` must be False.*`flash_attention=None`"
    for x in (QUERY, keras.Input((T, D))):
        with pytest.raises(ValueError, match=message):
            layer(x, x, return_attention_scores=True)


@pytest.mark.every_backend
def test_self_attention_contract():
    x = normal(B, T, D)
    check_layer(
        functools.partial(MultiHeadAttention, N, 3, causal=True), (x, x)
    )


def test_cross_attention_contract():
    make_layer = functools.partial(
        MultiHeadAttention,
        4,
        3,
        value_dim=2,
        num_key_value_heads=2,
        output_shape=3,
        use_gate=True,
        attention_axes=[-2],
        kernel_regularizer="l2",
        seed=3,
    )
    arguments = {
        "return_attention_scores": True,
        "attention_mask": normal(B, T, S) < 0.5,
    }
    output, weights = check_layer(make_layer, (QUERY, VALUE), arguments)
    assert output.shape == (B, T, 3)
    assert weights.shape == (B, 4, T, S)


def test_config_contains_every_argument():
    constructor = {
        "num_heads": 4,
        "key_dim": 3,
        "value_dim": 2,
        "dropout": 0.1,
        "use_bias": False,
        "output_shape": (7,),
        "attention_axes": (1,),
        "sliding_window": 2,
        "flash_attention": False,
        "use_gate": True,
        "seed": 7,
        "num_key_value_heads": 2,
        "causal": True,
    }
    objects = {
        "kernel_initializer": "zeros",
        "bias_initializer": "ones",
        "kernel_regularizer": "l1",
        "bias_regularizer": "l2",
        "activity_regularizer": "l2",
        "kernel_constraint": "non_neg",
        "bias_constraint": "unit_norm",
    }
    layer = MultiHeadAttention(**constructor, **objects)
    copy = MultiHeadAttention.from_config(layer.get_config())
    config = copy.get_config()
    for name, value in constructor.items():
        assert config[name] == value
    for name in objects:
        assert config[name] == layer.get_config()[name] is not None


@pytest.mark.every_backend
def test_symbolic_shapes():
    query, value = keras.Input((None, D)), keras.Input((None, D + 1))
    layer = MultiHeadAttention(N, 3)
    output, weights = layer(query, value, return_attention_scores=True)
    assert output.shape == (None, None, D)
    assert weights.shape == (None, N, None, None)
    output, weights = layer(
        keras.Input((T, D)),
        keras.Input((S, D + 1)),
        return_attention_scores=True,
    )
    assert output.shape == (None, T, D)
    assert weights.shape == (None, N, T, S)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 0}, "`num_heads` must be a positive"),
        ({"num_heads": 2.0}, "`num_heads` must be a positive"),
        ({"key_dim": -1}, "`key_dim` must be a positive"),
        ({"value_dim": 0}, "`value_dim` must be a positive"),
        ({"sliding_window": 0}, "`sliding_window` must be a positive"),
        ({"num_key_value_heads": 3}, "multiple of `num_key_value_heads`"),
        ({"num_key_value_heads": 0}, "`num_key_value_heads` must be a pos"),
        ({"dropout": 1.0}, "`dropout` must lie in"),
        ({"dropout": "half"}, "`dropout` must be a number"),
        ({"output_shape": "7"}, "`output_shape` must be an int"),
        ({"attention_axes": 1.5}, "`attention_axes` must be an int"),
        ({"flash_attention": True, "dropout": 0.1}, "`dropout` is not supp"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**{"num_heads": 4, "key_dim": 2, **arguments})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 6), (2, 6)], "`query`, `value` and `key` must have the same r"),
        ([(2, 4, 6), (2, 6)], "must have the same rank"),
        ([(2, 4, 6), (2, 5, 6), (2, 4, 6)], "`value` and `key`, except"),
    ],
)
def test_invalid_shapes_raise_before_build(shapes, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(2, 3)(*(ops.ones(shape) for shape in shapes))


@pytest.mark.parametrize("axes", [0, 2, (1, 2), -1, 5])
def test_invalid_attention_axes_raise(axes):
    layer = MultiHeadAttention(2, 3, attention_axes=axes)
    with pytest.raises(ValueError, match="`attention_axes` must lie between"):
        layer(QUERY, QUERY)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 4, 5), (2, 5, 7), (2, 5, 5)], "`query` must have 6 features"),
        ([(2, 4, 6), (2, 5, 6), (2, 5, 5)], "`value` must have 7 features"),
        ([(2, 4, 6), (2, 5, 7), (2, 5, 7)], "`key` must have 5 features"),
        ([(2, 4, 6), (2, 5, 7), (2, 4, 5)], "`value` and `key`, except"),
        ([(2, 4, 6), (3, 5, 7), (3, 5, 5)], "the same batch axes"),
        ([(4, 6), (5, 7), (5, 5)], "must have the same rank"),
        ([(2, 2, 4, 6), (2, 2, 5, 7), (2, 2, 5, 5)], "`query` must have rank"),
    ],
)
def test_invalid_shapes_raise_after_build(shapes, message):
    layer = make()
    with pytest.raises(ValueError, match=message):
        layer(*(ops.ones(shape) for shape in shapes))


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("query_mask", (B, S), "bool"),
        ("query_mask", (B, T, 1), "bool"),
        ("value_mask", (B, T), "bool"),
        ("key_mask", (S,), "bool"),
        ("attention_mask", (S, T), "bool"),
        ("attention_mask", (B, T, T), "bool"),
        ("attention_mask", (S,), "bool"),
        ("query_positions", (B, S), "int32"),
        ("key_positions", (S,), "int32"),
        ("key_positions", (B, S), "float32"),
    ],
)
def test_invalid_masks_and_positions_raise(name, shape, dtype):
    layer = make()
    with pytest.raises(ValueError, match=f"`{name}` must"):
        layer(QUERY, VALUE, KEY, **{name: ops.ones(shape, dtype)})


@pytest.mark.every_backend
def test_symbolic_inputs_are_checked():
    layer = make(key=VALUE)
    with pytest.raises(ValueError, match="`query` must have 6 features"):
        layer(keras.Input((T, D + 1)), keras.Input((S, D + 1)))
