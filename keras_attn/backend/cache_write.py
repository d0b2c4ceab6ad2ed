"""Writes into a preallocated buffer, in place where possible."""

from typing import Any

import keras
from keras import ops

from keras_attn.typing import TensorLike

if keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "jax":
    import jax


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
        start: int32 scalar, the first slot written; or int32 (B,), one for
            each row. The first axis of the buffer then has the B rows, or the
            heads of each of them, row by row.
        axis: int. Default 1.

    Returns:
        The updated buffer.
    """
    update = ops.cast(update, buffer.dtype)
    if len(getattr(start, "shape", ())):
        return _write_by_row(buffer, update, start, axis)
    if keras.backend.backend() == "torch" and not torch.is_grad_enabled():
        slots = start + torch.arange(update.shape[axis], device=buffer.device)
        return buffer.index_copy_(axis, slots, update)
    starts = [0] * len(buffer.shape)
    starts[axis] = start
    return ops.slice_update(buffer, starts, update)


def _write_by_row(buffer, update, start, axis):
    heads = buffer.shape[0] // start.shape[0]
    if keras.backend.backend() == "tensorflow":
        return _write_in_turn(buffer, update, start, axis, heads)
    if heads > 1:
        start = ops.repeat(start, heads)
    if keras.backend.backend() == "jax":
        # A scatter of whole windows, which a loop performs in place.
        write = jax.lax.dynamic_update_slice_in_dim
        return jax.vmap(write, (0, 0, 0, None))(buffer, update, start, axis - 1)
    if torch.is_grad_enabled():
        buffer = buffer.clone()
    rows, length = buffer.shape[:2]
    first = torch.arange(rows, device=buffer.device) * length + start
    slots = torch.arange(update.shape[1], device=buffer.device)
    slots = (first[:, None] + slots).reshape(-1)
    flat = buffer.view(-1, *buffer.shape[2:])
    flat.index_copy_(0, slots, update.reshape(-1, *buffer.shape[2:]))
    return buffer


def _write_in_turn(buffer, update, start, axis, heads):
    """Writes row by row: XLA would scatter along the last axis by element."""

    def written(row, buffer):
        starts = [0] * len(buffer.shape)
        starts[0], starts[axis] = row * heads, ops.take(start, row)
        sizes = (heads, *update.shape[1:])
        firsts = [row * heads] + [0] * (len(buffer.shape) - 1)
        fresh = ops.slice(update, firsts, sizes)
        return ops.slice_update(buffer, starts, fresh)

    return ops.fori_loop(0, start.shape[0], written, buffer)
