"""Many small steps over a large array, compiled to few passes over it."""

import functools

import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def one_program(function):
    """Lets XLA compile a function inside a TensorFlow graph.

    A graph on a CPU takes one pass over memory for each operation; compiled,
    the steps between two products share one. Compiled once for each shape.
    Outside of a graph, where every new shape would wait for the compiler, and
    on other backends, the function stays as it is: JAX compiles all, PyTorch
    nothing.

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
        return function(*args) if tf.executing_eagerly() else program(*args)

    return call
