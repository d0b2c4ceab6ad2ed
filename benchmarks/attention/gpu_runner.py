"""Steps on a GPU: no work besides attention, and a wait at the end."""

import keras
from keras import ops

from benchmarks.harness.device import synchronize


def runner(function, arrays, backward, dtype):
    """Returns a callable that runs steps of a function of tensors.

    Args:
        function: callable of one tensor per array, returns a tensor of the
            shape of the first.
        arrays: list of float32 arrays.
        backward: bool. Compute the gradients too, with the first tensor as the
            gradient of the result.
        dtype: str. The dtype of the tensors.

    Returns:
        Callable of a number of steps. It waits for the GPU, and returns a
        function that computes the sum of the mean absolute values of the last
        results.
    """
    tensors = [ops.convert_to_tensor(array, dtype) for array in arrays]
    prepare = {"jax": _jax, "torch": _torch}[keras.backend.backend()]
    step = prepare(function, backward)

    def run(steps):
        for _ in range(steps):
            results = step(*tensors)
        synchronize(results)
        return lambda: sum(map(_size, results))

    return run


def _size(result):
    return float(
        ops.convert_to_numpy(ops.mean(ops.abs(ops.cast(result, "float32"))))
    )


def _jax(function, backward):
    import jax

    @jax.jit
    def step(*tensors):
        if not backward:
            return (function(*tensors),)
        output, gradients_of = jax.vjp(function, *tensors)
        return output, *gradients_of(tensors[0])

    return step


def _torch(function, backward):
    import torch

    def step(*tensors):
        if not backward:
            with torch.no_grad():
                return (function(*tensors),)
        inputs = [tensor.detach().requires_grad_() for tensor in tensors]
        output = function(*inputs)
        gradients = torch.autograd.grad(output, inputs, tensors[0])
        return output.detach(), *gradients

    return step
