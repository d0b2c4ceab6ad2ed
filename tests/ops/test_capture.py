"""Capturing attention weights: scopes, names and errors."""

import keras
import pytest

import keras_attn
from keras_attn.backend import compiled
from keras_attn.ops import capture_weights
from keras_attn.ops.capture import capturing, record, refuse_capture
from tests.helpers.ops_cases import assert_close, normal, values

pytestmark = pytest.mark.every_backend


def attention(**kwargs):
    kwargs = {"name": "look", "key_dim": 4, "num_heads": 2, **kwargs}
    return keras_attn.layers.MultiHeadAttention(**kwargs)


def test_nothing_is_captured_outside_scope():
    assert not capturing()
    record("look", 1)
    with capture_weights() as captured:
        assert capturing()
    assert captured == {}
    assert not capturing()


def test_calls_are_numbered_per_layer():
    with capture_weights() as captured:
        record("a", 1)
        record("b", 2)
        record("a", 3)
    assert captured == {("a", 0): 1, ("b", 0): 2, ("a", 1): 3}


def test_vectors_are_captured_where_a_dict_is_given():
    vectors = {}
    with capture_weights(vectors=vectors), capture_weights() as captured:
        record("a", 1, (2, 3))
        record("b", 4)
    assert vectors == {("a", 0): (2, 3)}
    assert captured == {("a", 0): 1, ("b", 0): 4}


def test_scopes_nest():
    with capture_weights() as outer:
        with capture_weights() as inner:
            record("a", 1)
        assert capturing()
        record("a", 2)
    assert inner == {("a", 0): 1}
    assert outer == {("a", 0): 1, ("a", 1): 2}


def test_empty_scopes_nest():
    with capture_weights() as outer:
        with capture_weights() as inner:
            pass
        record("a", 1)
    assert outer == {("a", 0): 1}
    assert inner == {}
    assert not capturing()


def test_exception_closes_scope():
    with pytest.raises(KeyError), capture_weights():
        raise KeyError
    assert not capturing()


def test_captured_weights_match_returned_weights():
    layer, x = attention(), normal(2, 3, 8)
    output, weights = layer(x, x, return_attention_scores=True)
    with capture_weights() as captured:
        again = layer(x, x)
        layer(2 * x, x)
    assert list(captured) == [(layer.path, 0), (layer.path, 1)]
    assert_close(values(captured[layer.path, 0]), values(weights), 1e-6)
    assert_close(values(again), values(output))


def test_capture_inside_compiled_function():
    layer, x = attention(), normal(2, 3, 8)
    layer.build(x.shape, x.shape)

    def function(x):
        with capture_weights() as captured:
            layer(x, x)
        return list(captured.values())

    (weights,) = compiled(function, layer.variables)(x)
    _, expected = layer(x, x, return_attention_scores=True)
    assert_close(values(weights), values(expected), 1e-6)


def test_capturing_a_loop_raises():
    refuse_capture("a loop")
    with (
        capture_weights(),
        pytest.raises(RuntimeError, match="cannot be captured inside a loop"),
    ):
        refuse_capture("a loop")


def test_capture_overrides_flash_attention():
    layer, x = attention(), normal(2, 3, 8)
    expected = values(layer(x, x, return_attention_scores=True)[1])
    forced = attention(flash_attention=True)
    forced.build(x.shape, x.shape)
    forced.set_weights(layer.get_weights())
    with capture_weights() as captured:
        forced(x, x)
    assert_close(values(captured[forced.path, 0]), expected, 1e-6)


def test_capture_under_rematerialization_raises():
    x = normal(2, 3, 8)
    with keras.RematScope("full"):
        layer = attention(name="twice")
        layer.build(x.shape, x.shape)
        with (
            capture_weights(),
            pytest.raises(RuntimeError, match="captured inside a RematScope"),
        ):
            layer(x, x)
        # Not raised if the layer is not captured.
        with capture_weights("other") as captured:
            layer(x, x)
        assert not captured
