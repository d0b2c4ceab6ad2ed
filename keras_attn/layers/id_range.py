"""Checks of token ids, where their values can be read."""

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import concrete
from keras_attn.typing import Tensor, TensorLike


def as_ids(name: str, ids: TensorLike, vocabulary_size: int) -> Tensor:
    """Returns ids as integers, or raises ValueError.

    A `keras.Sequential` without an `Input` casts ids to the compute dtype of
    its first layer (as of Keras 3.15.1), so float32 and float64 are accepted if
    they hold integers; in compiled code, where values cannot be read, on trust.

    Args:
        name: str. Name of the argument, for error messages.
        ids: tensor or symbolic tensor.
        vocabulary_size: int. V.

    Returns:
        Int tensor, in the shape of `ids`.

    Raises:
        ValueError: an id that is no integer or out of range, or a dtype that
            rounds ids.
    """
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if dtype in ("float32", "float64"):
        values = concrete(ids)
        if values is not None and (values % 1 != 0).any():
            raise ValueError(
                f"`{name}` must hold integers (int32). Received: {name} of "
                f"dtype {dtype} with the value {values[values % 1 != 0][0]}"
            )
        check_id_range(name, ids, vocabulary_size)
        return ops.cast(ids, "int32")
    if "float" in dtype:
        raise ValueError(
            f"`{name}` must hold integers (int32), which {dtype} would round: "
            'begin a `keras.Sequential` with `keras.Input(shape, dtype="int32")'
            f"`. Received: {name} of dtype {dtype}"
        )
    check_id_range(name, checks.integers(name, ids), vocabulary_size)
    return ids


def check_id_range(
    name: str, ids: TensorLike, vocabulary_size: int | None, least: int = 0
) -> None:
    """Checks ids whose values are in the memory of the CPU.

    Args:
        name: str. Name of the argument, for error messages.
        ids: int array or tensor, symbolic tensor or spec.
        vocabulary_size: int. Ids must lie in [least, vocabulary_size).
        least: int. The lowest id. Default 0.

    Raises:
        ValueError: an id out of range.
    """
    values = ids if isinstance(ids, np.ndarray) else concrete(ids)
    if values is None or not values.size:
        return
    low, high = int(values.min()), int(values.max())
    if low < least or high >= vocabulary_size:
        raise ValueError(
            f"`{name}` must lie in [{least}, {vocabulary_size}). "
            f"Received: ids from {low} to {high}"
        )
