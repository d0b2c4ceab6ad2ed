"""Keys and values in 8 bits, with a scale for each token and head."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import reduce_max
from keras_attn.typing import TensorLike

_LARGEST = 127


class Int8(NamedTuple):
    """Integers and their scales, in place of a float tensor.

    Args:
        codes: int8 of the shape of the tensor.
        scales: float of that shape, except for a features axis of size 1, and
            of the dtype of the tensor.
    """

    codes: Any
    scales: Any


def rounded(tensor: TensorLike, axis: int = -1) -> Int8:
    """Rounds a float tensor to multiples of a scale per token and head.

    Args:
        tensor: float, with a features axis.
        axis: int. The features axis. Default -1.
    """
    exact = ops.cast(tensor, "float32")
    scales = reduce_max(ops.abs(exact), axis, keepdims=True) / _LARGEST
    scales = ops.cast(scales, tensor.dtype)
    # Codes are those of the scale that is stored.
    divisor = ops.cast(scales, "float32")
    codes = ops.round(exact / ops.where(divisor > 0, divisor, 1.0))
    codes = ops.clip(codes, -_LARGEST, _LARGEST)
    return Int8(ops.cast(codes, "int8"), scales)


def restored(buffer: Any) -> Any:
    """Returns the float tensor of an `Int8`, or a tensor unchanged."""
    if not isinstance(buffer, Int8):
        return buffer
    return ops.cast(buffer.codes, buffer.scales.dtype) * buffer.scales


def each(function: Callable[..., Any], *buffers: Any) -> Any:
    """Applies a function to tensors, or to those of each field of `Int8`s.

    Args:
        function: takes one tensor per buffer.
        *buffers: tensors, or all `Int8`.
    """
    if not isinstance(buffers[0], Int8):
        return function(*buffers)
    return Int8(*(function(*fields) for fields in zip(*buffers, strict=True)))


def shape_of(buffer: Any) -> Any:
    """Returns the shape of a tensor, or of the one that an `Int8` replaces."""
    return (buffer.codes if isinstance(buffer, Int8) else buffer).shape
