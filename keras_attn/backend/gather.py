"""Gathers entries by indices that are known to be in range."""

import keras
from keras import ops

from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch


def gather_rows(x: TensorLike, rows: TensorLike) -> Tensor:
    """Gathers along the first axis.

    `keras.ops.take` also supports negative indices, which takes four more
    operations per call on PyTorch (as of Keras 3.15.1).

    Args:
        x: tensor (N, ...).
        rows: int tensor of any shape, in [0, N).

    Returns:
        Tensor (*rows.shape, ...).
    """
    if keras.backend.backend() != "torch":
        return ops.take(x, rows, axis=0)
    taken = torch.index_select(x, 0, rows.reshape(-1))
    return taken.reshape((*rows.shape, *x.shape[1:]))


def take_along_axis(x: TensorLike, indices: TensorLike) -> Tensor:
    """Gathers along the last axis, by separate indices in each row.

    As for `gather_rows`, `keras.ops.take_along_axis` takes more operations on
    PyTorch (as of Keras 3.15.1).

    Args:
        x: tensor (..., N).
        indices: int (..., M), in [0, N). Indices.

    Returns:
        Tensor (..., M).
    """
    if keras.backend.backend() != "torch":
        return ops.take_along_axis(x, indices, axis=-1)
    return torch.gather(x, -1, indices.to(torch.int64))
