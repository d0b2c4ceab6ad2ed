"""Compiles elementwise code inside TensorFlow graphs with XLA."""

import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_attn.backend.numeric_checks import numerics_are_checked

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def xla_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function with XLA inside a TensorFlow graph.

    On a CPU, a TensorFlow graph makes one pass over memory per operation
    (as of TensorFlow 2.21.0); when compiled, the operations between two
    products share one pass. Compiled once per shape. In eager mode, where every
    new shape would wait for the compiler, and on other backends, the function
    is unchanged: JAX compiles everything, PyTorch nothing. The same holds under
    `tf.debugging.enable_check_numerics`, which XLA does not support.

    Args:
        function: takes and returns tensors; other arguments must be hashable.

    Returns:
        A callable with the arguments and results of `function`.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    program = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def call(*args):
        plain = tf.executing_eagerly() or numerics_are_checked()
        return function(*args) if plain else program(*args)

    return call
