"""Boolean masks, and zeroing of padding rows."""

import keras
import numpy as np
from keras import ops

from keras_attn.backend.inspection import concrete, is_concrete
from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch

# Numbers up to this size stay finite when multiplied by weights or activations.
_HARMLESS = 1e6


def bool_mask(name: str, mask: TensorLike) -> bool:
    """Converts a mask to bool, unless it may be an additive mask.

    An additive mask, as in Hugging Face and PyTorch, is 0 where a token may be
    seen and very negative elsewhere; a cast to bool would invert it.

    Args:
        name: str. Name of the argument, for error messages.
        mask: NumPy array, tensor, symbolic tensor, or the spec of a dataset's
            elements; bool or holding only 0 and 1.

    Returns:
        Bool, in the type and shape of `mask`; a spec as it is.

    Raises:
        ValueError: a float mask whose values cannot be read, because it is part
            of a compiled function or on an accelerator; or readable values
            other than 0 and 1.
    """
    is_array = isinstance(mask, np.ndarray)
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype == "bool":
        return mask
    values = mask if is_array else concrete(mask)
    if "complex" in dtype:
        raise ValueError(
            f"`{name}` must be bool or hold only 0 and 1. "
            f"Received: {name} of dtype {dtype}"
        )
    if values is None and "int" not in dtype:
        raise ValueError(
            f"`{name}` must be bool where its values cannot be read, in "
            "compiled code or on an accelerator. Convert an additive mask with "
            f"`mask == 0`, one of 0 and 1 with `mask == 1`. Received: {name} "
            f"of dtype {dtype}"
        )
    if values is not None:
        others = values[(values != 0) & (values != 1)]
        if others.size:
            raise ValueError(
                f"`{name}` must be bool or hold only 0 and 1. Convert an "
                f"additive mask with `mask == 0`. Received: {name} of dtype "
                f"{dtype} with the value {others.flat[0]}"
            )
    if is_array:
        return mask.astype("bool")
    is_tensor = ops.is_tensor(mask) or isinstance(mask, keras.KerasTensor)
    return ops.cast(mask, "bool") if is_tensor else mask


def zero_masked(x: TensorLike, token_mask: TensorLike) -> Tensor:
    """Zeros the rows of padding tokens.

    On a CPU with PyTorch, `x` is returned unchanged if that makes no
    difference: all values are finite and of ordinary size, so that a weight of
    0 removes the masked ones, and no sequence is empty. The check takes a
    twentieth of the time of a copy.

    Args:
        x: float (B, T, ...).
        token_mask: bool (B, T), True for tokens, False for padding.

    Returns:
        Float, in the shape and dtype of `x`.
    """
    if keras.backend.backend() == "torch" and _harmless(x, token_mask):
        return x
    axes = (..., *[None] * (len(x.shape) - 2))
    return ops.where(token_mask[axes], x, 0)


def is_statically_false(x: TensorLike) -> bool:
    """Returns whether a mask is known to be False everywhere.

    Checked only on a CPU with PyTorch, where the values can be read and the
    masking can be skipped.

    Args:
        x: bool tensor.

    Returns:
        Bool; False if the values cannot be read.
    """
    if keras.backend.backend() != "torch" or not is_concrete(x):
        return False
    return _evaluate(lambda: not x.any())


def _harmless(x, token_mask):
    if not (is_concrete(x) and is_concrete(token_mask) and x.is_contiguous()):
        return False
    flat = x.detach().reshape(-1)
    return _evaluate(
        # A single NaN or infinity makes the sum NaN or infinite.
        lambda: (
            torch.dot(flat, flat) <= _HARMLESS**2
            and token_mask.any(dim=1).all()
        )
    )


def _evaluate(condition):
    try:
        return bool(condition())
    except RuntimeError:
        # Values cannot be read under `torch.func.vmap` (as of PyTorch 2.13.0).
        return False
