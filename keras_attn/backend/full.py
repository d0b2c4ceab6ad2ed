"""`keras.ops.full` without a read of the value from the device."""

import keras
from keras import ops

from keras_attn.typing import Tensor

if keras.backend.backend() == "torch":
    import torch


def full(shape: tuple[int, ...], value: float, dtype: str) -> Tensor:
    """Returns a tensor of one value.

    On PyTorch, `keras.ops.full` moves the value to the device and reads it back
    (as of Keras 3.15.1).

    Args:
        shape: tuple of int or scalar tensors.
        value: int, float or bool.
        dtype: str, or a dtype of the backend.

    Returns:
        Tensor of that shape and dtype.
    """
    if keras.backend.backend() == "torch":
        # `zeros` knows the device and the dtype.
        return torch.full_like(ops.zeros(shape, dtype), value)
    return ops.full(shape, value, dtype=dtype)
