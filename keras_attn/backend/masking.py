"""Zeros where no token stands."""

import keras
from keras import ops

from keras_attn.backend.inspection import is_concrete

if keras.backend.backend() == "torch":
    import torch

# Numbers of this size can be multiplied by any in use and stay finite.
_HARMLESS = 1e6


def zero_masked(x, token_mask):
    """Puts zeros into rows where no token stands.

    On PyTorch's CPU the tensor comes back as it is where nobody could tell:
    what is hidden is a number of ordinary size, so that its weight of 0 makes
    0 of it, and no sequence is without any token. Finding this out takes a
    twentieth of the time of a copy.

    Args:
        x: float (B, T, ...).
        token_mask: bool (B, T), True where there is a token.

    Returns:
        Like `x`.
    """
    if keras.backend.backend() == "torch" and _harmless(x, token_mask):
        return x
    axes = (..., *[None] * (len(x.shape) - 2))
    return ops.where(token_mask[axes], x, 0)


def is_statically_false(x):
    """Says whether a mask is known to be False everywhere.

    Only PyTorch's CPU is asked, where what follows from it is saved at once.

    Args:
        x: bool tensor.

    Returns:
        Bool; False where nobody may look.
    """
    if keras.backend.backend() != "torch" or not is_concrete(x):
        return False
    return _seen(lambda: not x.any())


def _harmless(x, token_mask):
    if not (is_concrete(x) and is_concrete(token_mask) and x.is_contiguous()):
        return False
    flat = x.detach().reshape(-1)
    return _seen(
        # One NaN or infinity anywhere, and so is the sum.
        lambda: (
            torch.dot(flat, flat) <= _HARMLESS**2
            and token_mask.any(dim=1).all()
        )
    )


def _seen(question):
    try:
        return bool(question())
    except RuntimeError:
        # `torch.func.vmap` lets nobody look.
        return False
