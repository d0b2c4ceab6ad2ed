"""Score biases that depend on query and key positions."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn.typing import Tensor, TensorLike


class PositionBias(NamedTuple):
    """Score bias as a function of positions, which kernels compute in blocks.

        bias[b, n, t, s] = function(parameters, p[b, t], p[b, s])[n]

    A tensor (B, N, T, S) would be as large as the scores, which a blockwise
    kernel does not materialize.

    Args:
        function: callable. Takes `parameters`, int32 query positions (B, T) and
            int32 key positions (B, S), and returns float (B, N, T, S), with a
            size-1 batch axis if the positions have one. Must be differentiable
            with respect to `parameters` and read no other tensor. Must be
            hashable, and equal to functions that compute the same: a blockwise
            kernel compiles one program per function.
        parameters: float tensor, which may require gradients, or None.

    Examples:
        >>> def near(_, query, key):
        ...     gap = query[:, None, :, None] - key[:, None, None, :]
        ...     return -keras.ops.cast(keras.ops.abs(gap), "float32")
        >>> bias = keras_attn.ops.PositionBias(near)
        >>> positions = keras_attn.ops.positions.default_positions(3)
        >>> tuple(bias.function(bias.parameters, positions, positions).shape)
        (1, 1, 3, 3)
    """

    function: Callable
    parameters: Tensor | None = None


def as_tensors(bias: TensorLike | None) -> Any:
    """Converts the arrays and variables of a bias to tensors.

    Args:
        bias: array, variable or tensor, a `PositionBias`, or None.

    Returns:
        The bias, of tensors.
    """
    if bias is None:
        return None
    if not isinstance(bias, PositionBias):
        return ops.convert_to_tensor(bias)
    if bias.parameters is None:
        return bias
    return bias._replace(parameters=ops.convert_to_tensor(bias.parameters))


def four_axes(bias: TensorLike) -> Tensor:
    """Reshapes a bias broadcastable to (B, N, T, S) to rank 4.

    Args:
        bias: float, at most rank 4.

    Returns:
        Float, rank 4.
    """
    missing = 4 - len(bias.shape)
    if not missing:
        return bias
    return ops.reshape(bias, (*(1,) * missing, *ops.shape(bias)))
