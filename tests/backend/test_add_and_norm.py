"""Tests of `add_and_norm`, in graphs and in eager mode."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import add_and_norm
from keras_attn.layers import Dropout
from tests.helpers.contract import randomize
from tests.helpers.gradients import gradient
from tests.helpers.reference import layer_norm

RNG = np.random.default_rng(0)
X, OUTPUT, UPSTREAM, DIRECTION = RNG.normal(size=(4, 2, 3, 8)).astype("float32")


def graph(function):
    """Wraps the function in a `tf.function`, on TensorFlow."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, autograph=False)
    return function


def norm():
    layer = keras.layers.LayerNormalization(epsilon=1e-3)
    layer.build(X.shape)
    randomize(layer)
    return layer


class Fixed:
    """Dropout with the same seed in every call, to compare two calls."""

    rate = 0.25

    def __init__(self):
        layer = Dropout(self.rate, seed=3)
        self._seed = layer.seed_generator.next()
        self.seed_generator = self

    def next(self):
        return self._seed

    def __call__(self, x, training):
        from keras_attn.backend import seeded_dropout

        assert training
        return seeded_dropout(x, self.rate, self._seed)


def tensors(*arrays):
    return [ops.convert_to_tensor(array) for array in arrays]


def test_matches_equation():
    layer = norm()
    found = graph(lambda x, y: add_and_norm(x, y, layer))(*tensors(X, OUTPUT))
    expected = layer_norm(X + OUTPUT, *layer.get_weights(), 1e-3)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), expected, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dropped", [False, True])
def test_gradients_match_layers(dropped):
    layer = norm()
    dropout = Fixed() if dropped else None

    def loss(x, output):
        y = add_and_norm(x, output, layer, dropout)
        return ops.sum(y * ops.convert_to_tensor(UPSTREAM))

    def by_layers(x, output):
        if dropped:
            output = dropout(output, training=True)
        return ops.sum(layer(x + output) * ops.convert_to_tensor(UPSTREAM))

    whole = graph(loss)
    for one, other in zip(
        gradient(lambda *x: whole(*x), X, OUTPUT),
        gradient(by_layers, X, OUTPUT),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_weight_gradients_and_second_derivatives():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("the layers themselves run on this backend")
    import tensorflow as tf

    layer, dropout = norm(), Fixed()
    x, output = tensors(X, OUTPUT)

    def slopes(function):
        with tf.GradientTape() as outer:
            outer.watch([x, output])
            with tf.GradientTape() as tape:
                tape.watch([x, output])
                total = ops.sum(function(x, output) * UPSTREAM)
            weights = [v.value for v in layer.trainable_variables]
            first = tape.gradient(total, [x, output, *weights])
            along = sum(ops.sum(slope * DIRECTION) for slope in first[:2])
        return first, outer.gradient(along, [x, output])

    def by_equation(x, output):
        # Not the layer: `tf.nn.moments` contains a `stop_gradient`, which makes
        # second derivatives wrong.
        total = x + dropout(output, training=True)
        centered = total - ops.mean(total, axis=-1, keepdims=True)
        variance = ops.mean(centered * centered, axis=-1, keepdims=True)
        return centered * ops.rsqrt(variance + 1e-3) * layer.gamma + layer.beta

    found = tf.function(
        lambda: slopes(lambda x, y: add_and_norm(x, y, layer, dropout))
    )()
    for one, other in zip(
        tf.nest.flatten(found),
        tf.nest.flatten(slopes(by_equation)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_float64_gradient_is_float64():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("the layers themselves run on this backend")
    layer = keras.layers.LayerNormalization(epsilon=1e-3, dtype="float64")
    layer.build(X.shape)
    randomize(layer)
    wide = X.astype("float64")

    def loss(x):
        upstream = ops.convert_to_tensor(UPSTREAM.astype("float64"))
        return ops.sum(add_and_norm(x, x, layer) * upstream)

    (found,) = gradient(graph(loss), wide)
    assert found.dtype == np.float64
    step, total = 1e-6, np.zeros_like(wide)
    for index in np.ndindex(wide.shape):
        offset = np.zeros_like(wide)
        offset[index] = step
        above, below = (
            layer_norm(2 * x, *layer.get_weights(), 1e-3) * UPSTREAM
            for x in (wide + offset, wide - offset)
        )
        total[index] = (above - below).sum() / (2 * step)
    np.testing.assert_allclose(found, total, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_normalized_in_float32(dtype):
    layer = norm()
    x, output = (ops.cast(array, dtype) for array in (X, OUTPUT))
    found = graph(lambda x, y: add_and_norm(x, y, layer))(x, output)
    exact = layer(ops.cast(x + output, "float32"))
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(found, "float32")),
        ops.convert_to_numpy(exact),
        atol=3e-2,
    )
