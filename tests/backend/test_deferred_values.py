"""DeferredValues: variables get their first values at the end of a scope."""

import gc
import weakref

import keras
import numpy as np
import pytest

from keras_attn.backend import DeferredValues


class Drawn(keras.initializers.Initializer):
    """Counts how often a value is drawn."""

    calls = 0

    def __call__(self, shape, dtype=None):
        Drawn.calls += 1
        return keras.ops.ones(shape, dtype)


@pytest.fixture(autouse=True)
def count():
    Drawn.calls = 0


def made(dtype=None):
    layer = keras.layers.Dense(2, kernel_initializer=Drawn(), dtype=dtype)
    layer.build((None, 3))
    return layer


@pytest.mark.parametrize("dtype", ["float32", "float16", "mixed_bfloat16"])
def test_values_are_given_and_not_drawn(dtype):
    value = np.arange(6, dtype="float32").reshape(3, 2)
    with DeferredValues() as values:
        layer = made(dtype)
        values.give(layer.kernel, lambda: value)
    assert Drawn.calls == 0
    assert layer.kernel.dtype == made(dtype).kernel.dtype
    np.testing.assert_array_equal(layer.kernel.numpy(), value)
    # Without a given value, as usual.
    np.testing.assert_array_equal(layer.bias.numpy(), [0, 0])
    x = np.ones((1, 3), "float32")
    found = keras.ops.convert_to_numpy(layer(x))
    np.testing.assert_array_equal(found, [[6, 9]])


def test_a_layer_trains_like_any_other():
    with DeferredValues() as values:
        layer, dropout = made(), keras.layers.Dropout(0.5)
        values.give(layer.kernel, lambda: np.zeros((3, 2), "float32"))
    model = keras.Sequential([layer, dropout])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3), "float32"), np.ones((4, 2), "float32"), verbose=0)
    assert layer.trainable_variables == [layer.kernel, layer.bias]
    assert (layer.kernel.numpy() > 0).any()


def test_one_value_at_a_time_is_in_memory():
    alive = []

    def value():
        gc.collect()
        assert sum(array() is not None for array in alive) <= 1
        array = np.random.default_rng(len(alive)).normal(size=(64, 64))
        # Not aligned, so that no backend can use its memory.
        array = np.append(array, 0).astype("float32")[1:].reshape(64, 64)
        alive.append(weakref.ref(array))
        return array

    with DeferredValues() as values:
        layer = keras.Sequential([keras.layers.Dense(64) for _ in range(5)])
        layer.build((None, 64))
        for weight in layer.weights[::2]:
            values.give(weight, value)
    assert len(alive) == 5


def test_an_error_of_a_function_is_raised_at_the_end():
    def broken():
        raise OSError("the file is gone")

    called = []
    with pytest.raises(OSError, match="the file is gone"):
        with DeferredValues() as values:
            layer = made()
            values.give(layer.kernel, broken)
            values.give(layer.bias, lambda: called.append(1))
    # Later values are not computed, and the variables are usable.
    assert not called
    np.testing.assert_array_equal(layer.bias.numpy(), [0, 0])
    # Keras has no variables left that wait for values.
    with DeferredValues():
        layer = made()
    assert Drawn.calls == 1


def test_an_error_in_the_scope_is_raised_and_no_value_is_computed():
    called = []
    with pytest.raises(ValueError, match="no such layer"):
        with DeferredValues() as values:
            layer = made()
            values.give(layer.kernel, lambda: called.append(1))
            raise ValueError("no such layer")
    assert not called
    with DeferredValues():
        made()


def test_values_of_another_shape_raise():
    with pytest.raises(ValueError, match="shape"):
        with DeferredValues() as values:
            layer = made()
            values.give(layer.kernel, lambda: np.ones((2, 3), "float32"))
