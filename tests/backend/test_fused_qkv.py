"""Fused dense layers match calling each layer."""

import keras
import numpy as np
import pytest

from keras_attn.backend import apply_fused_qkv, fused_qkv

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 8)).astype("float32")


def layers(**arguments):
    wide = keras.layers.EinsumDense(
        "btd,dnh->btnh",
        (None, 2, 5),
        bias_axes="nh" if arguments.get("use_bias", True) else None,
        bias_initializer="normal",
        dtype=arguments.get("dtype"),
        activation=arguments.get("activation"),
    )
    narrow = keras.layers.Dense(3, bias_initializer="normal", **arguments)
    made = [wide, narrow, keras.layers.Dense(4, **arguments)]
    for layer in made:
        layer.build((None, None, 8))
    return made


def check(made, x=X, atol=1e-6):
    found = apply_fused_qkv(
        fused_qkv(made), made, keras.ops.convert_to_tensor(x)
    )
    assert len(found) == len(made)
    for layer, y in zip(made, found, strict=True):
        expected = layer(x)
        assert y.dtype == expected.dtype
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(keras.ops.cast(y, "float32")),
            keras.ops.convert_to_numpy(keras.ops.cast(expected, "float32")),
            atol=atol,
        )


@pytest.mark.parametrize("use_bias", [True, False])
def test_values(use_bias):
    check(layers(use_bias=use_bias))


def test_half_precision():
    x = keras.ops.cast(X, "bfloat16")
    check(layers(dtype="mixed_bfloat16"), x, 5e-2)


def test_lora_is_applied():
    made = layers()
    made[0].enable_lora(2)
    for variable in made[0].trainable_variables:
        variable.assign(RNG.normal(size=variable.shape))
    check(made, atol=1e-4)


@pytest.mark.parametrize("index", [0, 1])
def test_layers_that_do_more_are_not_fused(index):
    made = layers()
    made[index].quantize("int8")
    assert fused_qkv(made) == ()
    assert fused_qkv(layers(activation="relu")) == ()
    made = layers()
    made[index].activity_regularizer = keras.regularizers.L2(1.0)
    assert fused_qkv(made) == ()
