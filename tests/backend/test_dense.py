"""`apply_dense` matches calling the layer."""

import keras
import numpy as np
import pytest

from keras_attn.backend import apply_dense
from tests.helpers.gradients import gradient

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 8)).astype("float32")
HEADS = RNG.normal(size=(2, 3, 4, 2)).astype("float32")


def dense(**arguments):
    layer = keras.layers.Dense(6, bias_initializer="normal", **arguments)
    layer.build((None, None, 8))
    return layer, X, 1


def to_heads(**arguments):
    layer = keras.layers.EinsumDense(
        "btd,dnh->btnh",
        (None, 4, 2),
        bias_axes="nh",
        bias_initializer="normal",
        **arguments,
    )
    layer.build((None, None, 8))
    return layer, X, 1


def from_heads(**arguments):
    layer = keras.layers.EinsumDense(
        "btnh,nhd->btd",
        (None, 8),
        bias_axes="d",
        bias_initializer="normal",
        **arguments,
    )
    layer.build((None, None, 4, 2))
    return layer, HEADS, 2


LAYERS = [dense, to_heads, from_heads]


def equal(found, expected, **tolerance):
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found),
        keras.ops.convert_to_numpy(expected),
        **tolerance,
    )


@pytest.mark.parametrize("activation", [None, "relu", "sigmoid"])
@pytest.mark.parametrize("make", LAYERS)
def test_value_and_gradients(make, activation):
    layer, x, contracted = make(activation=activation)
    tensor = keras.ops.convert_to_tensor(x)
    equal(apply_dense(layer, tensor, contracted), layer(tensor), atol=1e-6)

    def total(function):
        return lambda *x: keras.ops.sum(keras.ops.square(function(*x)))

    (expected,) = gradient(total(layer), x)
    (found,) = gradient(total(lambda x: apply_dense(layer, x, contracted)), x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_without_a_bias():
    layer = keras.layers.Dense(6, use_bias=False)
    layer.build((None, None, 8))
    equal(
        apply_dense(layer, keras.ops.convert_to_tensor(X)), layer(X), atol=1e-6
    )


@pytest.mark.parametrize("make", LAYERS)
def test_lora_is_applied(make):
    layer, x, contracted = make()
    before = keras.ops.convert_to_numpy(layer(x))
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(RNG.normal(size=layer.lora_kernel_b.shape))
    found = apply_dense(layer, keras.ops.convert_to_tensor(x), contracted)
    equal(found, layer(x), atol=1e-5)
    assert np.abs(keras.ops.convert_to_numpy(found) - before).max() > 1e-2


@pytest.mark.parametrize("make", LAYERS)
def test_quantized_layer_is_called(make):
    layer, x, contracted = make()
    layer.quantize("int8")
    tensor = keras.ops.convert_to_tensor(x)
    equal(apply_dense(layer, tensor, contracted), layer(tensor), atol=1e-6)


def test_activity_regularizer_adds_loss():
    layer, x, _ = dense(activity_regularizer="l2")
    apply_dense(layer, keras.ops.convert_to_tensor(x))
    assert len(layer.losses) == 1


@pytest.mark.parametrize("make", LAYERS)
def test_mixed_precision_outside_a_call(make):
    """In a decoding step, no layer call casts the kernel."""
    layer, x, contracted = make(dtype="mixed_bfloat16")
    half = keras.ops.cast(x, "bfloat16")
    found = apply_dense(layer, half, contracted)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    equal(
        keras.ops.cast(found, "float32"),
        keras.ops.cast(layer(half), "float32"),
        atol=0.1,
    )


def test_empty_batch():
    layer, x, _ = dense()
    found = apply_dense(layer, keras.ops.convert_to_tensor(x[:0]))
    assert tuple(found.shape) == (0, 3, 6)
