"""While loop over tensors, compiled on JAX and TensorFlow."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.typing import Nest

if keras.backend.backend() == "torch":
    import torch

# Reading the condition waits until a GPU has caught up.
_CHECK_EVERY = 8


def while_loop(
    function: Callable[..., Any],
    going: Callable[..., Any],
    loop: Nest,
    times: int,
) -> Any:
    """Applies a function repeatedly while a condition holds.

    Args:
        function: takes a nest of tensors and returns the next, of the same
            structure, shapes and dtypes. Once `going` is False, further calls
            must have no effect: on an accelerator, PyTorch checks the condition
            only at every eighth step.
        going: takes the nest and returns bool (): whether to continue.
        loop: nest of tensors, a tuple.
        times: int. Maximum number of iterations.

    Returns:
        The last nest.
    """
    if keras.backend.backend() != "torch":
        kind = type(loop)
        loop = ops.while_loop(
            lambda *loop: going(kind(*loop)),
            lambda *loop: tuple(function(kind(*loop))),
            tuple(loop),
            maximum_iterations=times,
        )
        return kind(*loop)
    with torch.inference_mode():
        every = 1 if going(loop).device.type == "cpu" else _CHECK_EVERY
        for number in range(times):
            if number % every == 0 and not going(loop):
                break
            loop = function(loop)
    return loop
