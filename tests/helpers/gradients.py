"""Gradients from the current backend, as NumPy arrays."""

import keras


def gradient(function, *arrays):
    """Returns the gradient of a scalar function at each of its arguments.

    The differentiation is the backend's own: `jax.grad`, `tf.GradientTape` or
    `torch.autograd`. An argument that the function does not use gets zeros.

    Args:
        function: callable that takes one float tensor per array and returns a
            scalar tensor.
        *arrays: float arrays or tensors. Their dtypes are kept (JAX reads
            float64 as float32).

    Returns:
        List of NumPy arrays, shaped like `arrays`.

    Raises:
        ValueError: `function` did not return a scalar, or an argument is not
            of a float dtype.

    Examples:
    >>> import numpy as np
    >>> x, y = np.float32([1, 2]), np.float32([3, 4])
    >>> gradients = gradient(lambda x, y: keras.ops.sum(x * x * y), x, y)
    >>> [array.tolist() for array in gradients]
    [[6.0, 16.0], [1.0, 4.0]]
    """
    tensors = [keras.ops.convert_to_tensor(array) for array in arrays]
    for tensor in tensors:
        if "float" not in keras.backend.standardize_dtype(tensor.dtype):
            raise ValueError(
                "`arrays` must be floats. Received: an array of dtype "
                f"{keras.backend.standardize_dtype(tensor.dtype)}"
            )
    gradients = _DIFFERENTIATE[keras.backend.backend()](function, tensors)
    return [keras.ops.convert_to_numpy(tensor) for tensor in gradients]


def _scalar(value):
    if tuple(value.shape) != ():
        raise ValueError(
            "`function` must return a scalar. "
            f"Received: a result of shape {tuple(value.shape)}"
        )
    return value


def _jax(function, tensors):
    import jax

    argnums = tuple(range(len(tensors)))
    return jax.grad(lambda *x: _scalar(function(*x)), argnums)(*tensors)


def _tensorflow(function, tensors):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = _scalar(function(*tensors))
    gradients = tape.gradient(
        value, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return [tf.convert_to_tensor(slices) for slices in gradients]


def _torch(function, tensors):
    import torch

    tensors = [x.detach().clone().requires_grad_(True) for x in tensors]
    value = _scalar(function(*tensors))
    if not value.requires_grad:
        return [torch.zeros_like(x) for x in tensors]
    return torch.autograd.grad(
        value, tensors, allow_unused=True, materialize_grads=True
    )


_DIFFERENTIATE = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
