"""A loop over tensors: one program where programs are compiled."""

import keras
from keras import ops

if keras.backend.backend() == "torch":
    import torch

# A GPU would have to catch up with the program before each look.
_LOOK_EVERY = 8


def while_loop(function, going, loop, times):
    """Applies a function again and again while there is anything to do.

    Args:
        function: takes a nest of tensors and returns the next, of the same
            structure, shapes and dtypes. Once nothing is going it must make no
            difference any more: on an accelerator PyTorch looks at every eighth
            step only.
        going: takes the nest and returns bool (): whether to go on.
        loop: nest of tensors, a tuple.
        times: int. How often at most.

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
        every = 1 if going(loop).device.type == "cpu" else _LOOK_EVERY
        for number in range(times):
            if number % every == 0 and not going(loop):
                break
            loop = function(loop)
    return loop
