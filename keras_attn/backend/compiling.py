"""Turning a function of tensors into one compiled program."""

import weakref

import keras

name = keras.backend.backend()
if name == "torch":
    import torch
elif name == "jax":
    import jax
elif name == "tensorflow":
    import tensorflow as tf

_programs = weakref.WeakKeyDictionary()


def compiled(function, variables, owner=None, key=None):
    """Compiles `function` for inference, once for every shape it meets.

    JAX hands the variables to the program as arguments: in a closure they
    would be frozen, and `assign` would go unseen. PyTorch runs the function as
    it is, without gradients; `torch.compile` takes minutes to start.

    Args:
        function: takes a nest of tensors, returns a nest of tensors.
        variables: list of `keras.Variable` that the function reads.
        owner: object with which the program is kept, for as long as these are
            its variables; the function must not hold it. Default None: the
            caller keeps the program.
        key: hashable. Functions of one owner and one key are the same.

    Returns:
        A callable with the arguments and results of `function`.
    """
    if name == "torch":
        return torch.inference_mode()(function)
    if owner is None:
        return _compiled(function, variables)
    kept = _programs.setdefault(owner, {})
    key = key, tuple((id(v), v.dtype) for v in variables)
    if key not in kept:
        kept[key] = _compiled(function, variables)
    return kept[key]


def _compiled(function, variables):
    if name == "jax":

        @jax.jit
        def program(values, *args):
            mapping = list(zip(variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return function(*args)

        return lambda *args: program([v.value for v in variables], *args)
    if name == "tensorflow":
        traced = tf.function(function, autograph=False, jit_compile=True)
        # A program for every shape is what is wanted here; a plain call would
        # warn of it.
        return lambda *args: traced.get_concrete_function(*args)(*args)
    return function
