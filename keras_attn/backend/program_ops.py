"""Operations whose Keras version splits a program of `torch.compile`."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.backend.inspection import is_torch_program
from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch


def reduce_max(
    x: TensorLike, axis: int | tuple[int, ...], keepdims: bool = False
) -> Tensor:
    """Computes the maximum along axes, as `keras.ops.max` does.

    Args:
        x: tensor with at least one element along the axes.
        axis: int, or tuple of int.
        keepdims: bool. Keep the axes, with length 1. Default False.

    Returns:
        Tensor in the dtype of `x`.
    """
    # Keras calls a function that Dynamo does not trace (as of Keras 3.15.1,
    # keras/src/backend/torch/numpy.py:214).
    if is_torch_program():
        return torch.amax(x, dim=axis, keepdim=keepdims)
    return ops.max(x, axis=axis, keepdims=keepdims)


def reduce_min(x: TensorLike, axis: int, keepdims: bool = False) -> Tensor:
    """Computes the minimum along an axis, as `keras.ops.min` does.

    Args:
        x: tensor with at least one element along the axis.
        axis: int.
        keepdims: bool. Keep the axis, with length 1. Default False.

    Returns:
        Tensor in the dtype of `x`.
    """
    if is_torch_program():
        return torch.amin(x, dim=axis, keepdim=keepdims)
    return ops.min(x, axis=axis, keepdims=keepdims)


def pad(
    x: TensorLike, widths: Sequence[tuple[Any, Any]], constant: int = 0
) -> Tensor:
    """Pads a tensor with a constant, as `keras.ops.pad` does.

    Args:
        x: tensor.
        widths: sequence of pairs (before, after), one per axis.
        constant: number or bool, the padding. Default 0.

    Returns:
        Tensor in the dtype of `x`.
    """
    # Keras creates an operation and with it a name, from a global counter that
    # a program must not change (as of Keras 3.15.1).
    if is_torch_program():
        # PyTorch starts with the last axis.
        flat = [int(width) for pair in reversed(widths) for width in pair]
        return torch.nn.functional.pad(x, flat, value=constant)
    return ops.pad(x, widths, constant_values=constant)
