"""A bias on the scores that depends on where query and key stand."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops


class PositionBias(NamedTuple):
    """Says how to compute a bias, for a kernel that wants it in blocks.

        bias[b, n, t, s] = function(parameters, p[b, t], p[b, s])[n]

    A tensor (B, N, T, S) would be as large as the scores, which a blockwise
    kernel never holds.

    Args:
        function: callable. Takes `parameters`, int32 query positions (B, T) and
            int32 key positions (B, S), and returns float (B, N, T, S), a size-1
            batch axis where the positions have one. Differentiable with respect
            to `parameters`; reads no other tensor. Hashable, and equal to one
            that does the same: a blockwise kernel compiles a program for each.
        parameters: float tensor, for which `function` may have gradients, or
            None.

    Examples:
        >>> def near(_, query, key):
        ...     gap = query[:, None, :, None] - key[:, None, None, :]
        ...     return -keras.ops.cast(keras.ops.abs(gap), "float32")
        >>> bias = keras_attn.ops.PositionBias(near)
        >>> places = keras_attn.ops.positions.default_positions(3)
        >>> tuple(bias.function(bias.parameters, places, places).shape)
        (1, 1, 3, 3)
    """

    function: Callable
    parameters: Any = None


def as_tensors(bias):
    """Turns arrays and variables of a bias into tensors.

    Args:
        bias: array, variable or tensor, a `PositionBias` of one, or None.

    Returns:
        The same of tensors.
    """
    if bias is None:
        return None
    if not isinstance(bias, PositionBias):
        return ops.convert_to_tensor(bias)
    if bias.parameters is None:
        return bias
    return bias._replace(parameters=ops.convert_to_tensor(bias.parameters))


def four_axes(bias):
    """Gives a bias that is broadcastable to (B, N, T, S) all four axes.

    Args:
        bias: float, rank 4 at most.

    Returns:
        Float, rank 4.
    """
    missing = 4 - len(bias.shape)
    if not missing:
        return bias
    return ops.reshape(bias, (*(1,) * missing, *ops.shape(bias)))
