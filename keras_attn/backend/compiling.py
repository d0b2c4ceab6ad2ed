"""Compiles a function of tensors for inference."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras

from keras_attn.backend.numeric_checks import without_numeric_checks
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.owned_programs import OwnedPrograms


name: Any = keras.backend.backend()
if name == "torch":
    import torch
elif name == "jax":
    import jax
elif name == "tensorflow":
    import tensorflow as tf


def compiled(
    function: Callable[..., Any],
    variables: Sequence[keras.Variable],
    programs: "OwnedPrograms | None" = None,
    key: TensorLike | None = None,
) -> Callable[..., Any]:
    """Compiles `function` for inference, once per input shape.

    On JAX, variables are passed to the program as arguments: in a closure their
    values would be constants, and `assign` would have no effect. On PyTorch the
    function runs uncompiled, without gradients; `torch.compile` takes minutes
    to start (as of PyTorch 2.13.0).

    Args:
        function: takes a nest of tensors, returns a nest of tensors.
        variables: list of `keras.Variable` that the function reads.
        programs: `OwnedPrograms` of the object that the function reads, whose
            lifetime the program has; the function must not reference it.
            Default None: the program is not cached.
        key: hashable. Identifies the function among those of the object.

    Returns:
        A callable with the arguments and results of `function`.
    """
    if name == "torch":
        return torch.inference_mode()(function)
    if programs is None:
        return _compiled(function, variables)
    return programs.get(
        key, lambda: _compiled(programs.traced(function), variables)
    )


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

        def program(*args):
            # One program per shape is intended; a plain call would warn about
            # retracing (as of TensorFlow 2.21.0).
            with without_numeric_checks():
                return traced.get_concrete_function(*args)(*args)

        return program
    return function
