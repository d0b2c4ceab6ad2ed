"""Memory layout of cached keys and values, which avoids copies in each step.

The first axis merges rows and heads, row by row: one matrix per head of a row.
With two separate axes, XLA would keep the buffer of a loop in two layouts, that
of the loop and that of the product, and copy all of it at each step
(as of JAX 0.10.2 and TensorFlow 2.21.0).

Under `keras.distribution` rows and heads are two axes: they are split over
different devices, and a merged axis cannot be.
"""

from typing import Any

import keras
from keras import ops

from keras_attn.backend.sharding import active_distribution, shard_cache
from keras_attn.typing import Tensor, TensorLike

# PyTorch's fused kernel needs the features of a key to be contiguous
# (as of PyTorch 2.13.0). XLA multiplies matrices in row-major order and would
# transpose the keys first (as of JAX 0.10.2 and TensorFlow 2.21.0).
_FEATURES_LAST = keras.backend.backend() == "torch"

# Counted from the end, because there may be one or two axes before it.
KEY_SLOTS_AXIS = -2 if _FEATURES_LAST else -1
VALUE_SLOTS_AXIS = -2


def no_keys(rows: Any, heads: int, slots: Any, width: int, dtype: str) -> Any:
    """Returns zeros for a cache, in the layout of `keys_by_head`."""
    head = (slots, width) if _FEATURES_LAST else (width, slots)
    return _zeros(rows, heads, head, dtype)


def no_values(rows: Any, heads: int, slots: Any, width: int, dtype: str) -> Any:
    """Returns zeros for a cache, in the layout of `values_by_head`."""
    return _zeros(rows, heads, (slots, width), dtype)


def keys_by_head(keys: Any) -> Any:
    """Transposes (B, S, K, H) to (B K, H, S), on PyTorch to (B K, S, H)."""
    order = (0, 2, 1, 3) if _FEATURES_LAST else (0, 2, 3, 1)
    return _merge_heads(ops.transpose(keys, order))


def keys_by_slot(keys: Any, heads: int) -> Tensor:
    """Inverts `keys_by_head`.

    Args:
        keys: as returned by `keys_by_head`.
        heads: int. K.

    Returns:
        Float (B, S, K, H).
    """
    order = (0, 2, 1, 3) if _FEATURES_LAST else (0, 3, 1, 2)
    return ops.transpose(_split_heads(keys, heads), order)


def values_by_head(values: Any) -> Any:
    """Transposes (B, S, K, W) to (B K, S, W)."""
    return _merge_heads(ops.transpose(values, (0, 2, 1, 3)))


def values_by_slot(values: Any, heads: int) -> Tensor:
    """Inverts `values_by_head`.

    Args:
        values: as returned by `values_by_head`.
        heads: int. K.

    Returns:
        Float (B, S, K, W).
    """
    return ops.transpose(_split_heads(values, heads), (0, 2, 1, 3))


def cached_heads(tensor: TensorLike, rows: int | None) -> int | None:
    """Returns the number of heads of cached keys or values.

    Args:
        tensor: as returned by `keys_by_head` or `values_by_head`.
        rows: int. B; or None if it is not known.

    Returns:
        Int, or None if it is not known.
    """
    if len(tensor.shape) == 4:
        return tensor.shape[1]
    merged = tensor.shape[0]
    return merged // rows if rows and merged is not None else None


def _zeros(rows, heads, matrix, dtype):
    if active_distribution() is None:
        return ops.zeros((rows * heads, *matrix), dtype)
    return shard_cache(ops.zeros((rows, heads, *matrix), dtype))


def _merge_heads(tensor):
    if active_distribution() is not None:
        return shard_cache(tensor)
    return ops.reshape(tensor, (-1, *ops.shape(tensor)[2:]))


def _split_heads(tensor, heads):
    if len(tensor.shape) == 4:
        return tensor
    return ops.reshape(tensor, (-1, heads, *ops.shape(tensor)[1:]))
