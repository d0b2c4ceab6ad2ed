"""Counts the incorrect training steps of a model with a linear loss.

24 dense layers without biases take one step of plain gradient descent with a
learning rate of 1, repeatedly from the same weights. NumPy computes the
expected result. The backend is TensorFlow, whatever KERAS_BACKEND is:

    python docs/guides/linear_loss.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

# A GPU rounds differently than NumPy.
tf.config.set_visible_devices([], "GPU")

WIDTH, DEPTH, STEPS = 64, 24, 60

random = np.random.default_rng(0)
x, y = random.normal(size=(2, 32, WIDTH)).astype("float32")
kernels = [
    np.linalg.qr(random.normal(size=(WIDTH, WIDTH)))[0].astype("float32")
    for _ in range(DEPTH)
]


class Sum(keras.losses.Loss):
    """The sum of y * prediction, or of their squared differences."""

    def __init__(self, squared):
        super().__init__(reduction="sum")
        self.squared = squared

    def call(self, y_true, y_pred):
        if self.squared:
            return keras.ops.sum(keras.ops.square(y_pred - y_true), axis=-1)
        return keras.ops.sum(y_true * y_pred, axis=-1)


def by_numpy(squared):
    """Returns the kernels after one step."""
    outputs = [x]
    for kernel in kernels:
        outputs.append(outputs[-1] @ kernel)
    gradient = 2 * (outputs[-1] - y) if squared else y
    updated = []
    for kernel, inputs in zip(kernels[::-1], outputs[-2::-1], strict=True):
        updated.append(kernel - inputs.T @ gradient)
        gradient = gradient @ kernel.T
    return updated[::-1]


def wrong_steps(squared=False, **how):
    """Returns the number of steps whose result differs from NumPy's."""
    dense = [keras.layers.Dense(WIDTH, use_bias=False) for _ in kernels]
    model = keras.Sequential([keras.Input((WIDTH,)), *dense])
    model.compile(keras.optimizers.SGD(1.0), Sum(squared), **how)
    expected = by_numpy(squared)
    wrong = 0
    for _ in range(STEPS):
        model.set_weights(kernels)
        model.train_on_batch(x, y)
        wrong += not all(
            np.allclose(found, kernel, rtol=1e-3, atol=1e-2)
            for found, kernel in zip(model.get_weights(), expected, strict=True)
        )
    return wrong


for name, how in {
    "linear, as a graph": {"jit_compile": False},
    "linear, XLA": {"jit_compile": True},
    "linear, eager": {"run_eagerly": True},
    "squares, as a graph": {"jit_compile": False, "squared": True},
}.items():
    print(
        f"{name:20} {wrong_steps(**how):2} of {STEPS} steps wrong", flush=True
    )
