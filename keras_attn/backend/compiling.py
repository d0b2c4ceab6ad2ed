"""Turning a function of tensors into one compiled program."""

import keras

name = keras.backend.backend()
if name == "torch":
    import torch
elif name == "jax":
    import jax
elif name == "tensorflow":
    import tensorflow as tf


def compiled(function, variables):
    """Compiles `function` for inference, once for every shape it meets.

    JAX hands the variables to the program as arguments: in a closure they
    would be frozen, and `assign` would go unseen. PyTorch runs the function as
    it is, without gradients; `torch.compile` takes minutes to start.

    Args:
        function: takes a nest of tensors, returns a nest of tensors.
        variables: list of `keras.Variable` that the function reads.

    Returns:
        A callable with the arguments and results of `function`.
    """
    if name == "jax":

        @jax.jit
        def program(values, *args):
            mapping = list(zip(variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return function(*args)

        return lambda *args: program([v.value for v in variables], *args)
    if name == "tensorflow":
        traced = tf.function(function, autograph=False)
        # A program for every shape is what is wanted here; a plain call would
        # warn of it.
        return lambda *args: traced.get_concrete_function(*args)(*args)
    if name == "torch":
        return torch.no_grad()(function)
    return function
