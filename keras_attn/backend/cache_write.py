"""Writing into a preallocated buffer, in place where that is possible."""

import keras
from keras import ops

if keras.backend.backend() == "torch":
    import torch


def write_rows(buffer, update, start):
    """Writes `update` into `buffer` from slot `start` of axis 1 on.

    The buffer that was passed in must not be used again: PyTorch writes into
    it, because its `slice_update` would copy the whole buffer for every token.

    Args:
        buffer: tensor (B, L, ...).
        update: tensor (B, T, ...), T <= L, cast to the buffer's dtype.
        start: int32 scalar. The first slot written.

    Returns:
        The written tensor (B, L, ...).
    """
    update = ops.cast(update, buffer.dtype)
    if keras.backend.backend() == "torch" and not torch.is_grad_enabled():
        slots = start + torch.arange(update.shape[1], device=buffer.device)
        return buffer.index_copy_(1, slots, update)
    zeros = [0] * (len(buffer.shape) - 2)
    return ops.slice_update(buffer, [0, start, *zeros], update)
