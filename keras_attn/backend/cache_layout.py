"""Memory layout of cached keys and values, which avoids copies in each step.

The first axis merges rows and heads, row by row: one matrix per head of a row.
With two separate axes, XLA would keep the buffer of a loop in two layouts, that
of the loop and that of the product, and copy all of it at each step
(as of JAX 0.10.2 and TensorFlow 2.21.0).
"""

import keras
from keras import ops

# PyTorch's fused kernel needs the features of a key to be contiguous
# (as of PyTorch 2.13.0). XLA multiplies matrices in row-major order and would
# transpose the keys first (as of JAX 0.10.2 and TensorFlow 2.21.0).
_FEATURES_LAST = keras.backend.backend() == "torch"

KEY_SLOTS_AXIS = 1 if _FEATURES_LAST else 2
VALUE_SLOTS_AXIS = 1


def no_keys(rows, heads, slots, width, dtype):
    """Returns zeros for a cache, in the layout of `keys_by_head`."""
    head = (slots, width) if _FEATURES_LAST else (width, slots)
    return ops.zeros((rows * heads, *head), dtype)


def no_values(rows, heads, slots, width, dtype):
    """Returns zeros for a cache, in the layout of `values_by_head`."""
    return ops.zeros((rows * heads, slots, width), dtype)


def keys_by_head(keys):
    """Transposes (B, S, K, H) to (B K, H, S), on PyTorch to (B K, S, H)."""
    order = (0, 2, 1, 3) if _FEATURES_LAST else (0, 2, 3, 1)
    return _merge_heads(ops.transpose(keys, order))


def keys_by_slot(keys, heads):
    """Inverts `keys_by_head`.

    Args:
        keys: as returned by `keys_by_head`.
        heads: int. K.

    Returns:
        Float (B, S, K, H).
    """
    order = (0, 2, 1, 3) if _FEATURES_LAST else (0, 3, 1, 2)
    return ops.transpose(_split_heads(keys, heads), order)


def values_by_head(values):
    """Transposes (B, S, K, W) to (B K, S, W)."""
    return _merge_heads(ops.transpose(values, (0, 2, 1, 3)))


def values_by_slot(values, heads):
    """Inverts `values_by_head`.

    Args:
        values: as returned by `values_by_head`.
        heads: int. K.

    Returns:
        Float (B, S, K, W).
    """
    return ops.transpose(_split_heads(values, heads), (0, 2, 1, 3))


def _merge_heads(tensor):
    return ops.reshape(tensor, (-1, *ops.shape(tensor)[2:]))


def _split_heads(tensor, heads):
    return ops.reshape(tensor, (-1, heads, *ops.shape(tensor)[1:]))
