"""Writes into a preallocated buffer, in place where possible."""

from typing import Any

import keras
from keras import ops

from keras_attn.typing import TensorLike

if keras.backend.backend() == "torch":
    import torch


def write_rows(
    buffer: TensorLike, update: TensorLike, start: TensorLike, axis: int = 1
) -> Any:
    """Writes `update` into `buffer`, starting at slot `start` of an axis.

    The buffer passed in must not be used again: on PyTorch it is written in
    place, because `slice_update` would copy the whole buffer for every token
    (as of Keras 3.15.1).

    Args:
        buffer: tensor with L slots along the axis.
        update: tensor of the same shape except for T <= L slots; cast to the
            buffer's dtype.
        start: int32 scalar. The first slot written.
        axis: int. Default 1.

    Returns:
        The updated buffer.
    """
    update = ops.cast(update, buffer.dtype)
    if keras.backend.backend() == "torch" and not torch.is_grad_enabled():
        slots = start + torch.arange(update.shape[axis], device=buffer.device)
        return buffer.index_copy_(axis, slots, update)
    starts = [0] * len(buffer.shape)
    starts[axis] = start
    return ops.slice_update(buffer, starts, update)
