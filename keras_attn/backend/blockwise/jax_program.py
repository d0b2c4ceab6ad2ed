"""Blockwise attention on JAX, with its own gradient."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from keras_attn.backend.blockwise.online_softmax import backward, forward
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.blockwise.online_softmax import Blocking, Operands


# Jitted: as of JAX 0.10.2, an eager loop is compiled again in each call.
@functools.partial(jax.jit, static_argnums=0)
@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def run(blocking: "Blocking", operands: "Operands") -> Tensor:
    """Computes attention.

    Args:
        blocking: `Blocking`.
        operands: `Operands`.

    Returns:
        Float (I, B * K, G * t, W).
    """
    return forward(blocking, operands)[0]


def _forward(blocking, operands):
    output, log_sum = forward(blocking, operands)
    return output, (operands, output, log_sum)


def _backward(blocking, kept, upstream):
    operands, output, log_sum = kept
    query, key, value, bias = backward(
        blocking, operands, output, log_sum, upstream, pull_back
    )
    slopes = jax.tree.map(no_slope, operands)
    return (
        slopes._replace(
            query=query,
            key=key,
            value=value,
            bias=bias if bias is not None else slopes.bias,
        ),
    )


def no_slope(tensor: TensorLike) -> Tensor:
    """Returns the gradient of a tensor that has none."""
    if jax.numpy.issubdtype(tensor.dtype, jax.numpy.floating):
        return jax.numpy.zeros_like(tensor)
    return np.zeros(tensor.shape, jax.dtypes.float0)


def pull_back(
    function: Callable[..., Any], tensor: TensorLike, upstream: float
) -> Tensor:
    """Returns the gradient of a function of one tensor."""
    return jax.vjp(function, tensor)[1](upstream)[0]


run.__wrapped__.defvjp(_forward, _backward)
