"""Zeros where no token stands."""

import keras
from keras import ops

from keras_attn.backend.inspection import may_look

if keras.backend.backend() == "torch":
    import torch

# Numbers of this size can be multiplied by any in use and stay finite.
_HARMLESS = 1e6


def zero_hidden(x, there):
    """Puts zeros into rows where no token stands.

    On PyTorch's CPU the tensor comes back as it is where nobody could tell:
    what is hidden is a number of ordinary size, so that its weight of 0 makes
    0 of it, and no sequence is without any token. Finding this out takes a
    twentieth of the time of a copy.

    Args:
        x: float (B, T, ...).
        there: bool (B, T), True where there is a token.

    Returns:
        Like `x`.
    """
    if keras.backend.backend() == "torch" and _harmless(x, there):
        return x
    axes = (..., *[None] * (len(x.shape) - 2))
    return ops.where(there[axes], x, 0)


def _harmless(x, there):
    if not (may_look(x) and may_look(there) and x.is_contiguous()):
        return False
    flat = x.detach().reshape(-1)
    try:
        # One NaN or infinity anywhere, and so is the sum.
        small = bool(torch.dot(flat, flat) <= _HARMLESS**2)
        return small and bool(there.any(dim=1).all())
    except RuntimeError:
        # `torch.func.vmap` lets nobody look.
        return False
