"""How a cache lays keys and values out, so that no step has to copy them all.

Each head of each row is a matrix on the first axis, row after row. A product
over heads takes them so: were rows and heads two axes, XLA would write the
buffer of a loop twice at each step, once as it stands in the loop and once as
the product wants it, and copy it before.
"""

import keras
from keras import ops

# PyTorch's fused kernel wants the features of a key side by side. XLA
# multiplies matrices as they lie, and else turns the keys first.
_FEATURES_LAST = keras.backend.backend() == "torch"

KEY_SLOTS_AXIS = 1 if _FEATURES_LAST else 2
VALUE_SLOTS_AXIS = 1


def no_keys(rows, heads, slots, width, dtype):
    """Returns zeros for a cache, laid out as `keys_by_head` lays keys out."""
    head = (slots, width) if _FEATURES_LAST else (width, slots)
    return ops.zeros((rows * heads, *head), dtype)


def no_values(rows, heads, slots, width, dtype):
    """Returns zeros laid out as `values_by_head` lays values out."""
    return ops.zeros((rows * heads, slots, width), dtype)


def keys_by_head(keys):
    """Turns float (B, S, K, H) to (B K, H, S), on PyTorch to (B K, S, H)."""
    order = (0, 2, 1, 3) if _FEATURES_LAST else (0, 2, 3, 1)
    return _joined(ops.transpose(keys, order))


def keys_by_slot(keys, heads):
    """Undoes `keys_by_head`.

    Args:
        keys: as it returns them.
        heads: int. K.

    Returns:
        Float (B, S, K, H).
    """
    order = (0, 2, 1, 3) if _FEATURES_LAST else (0, 3, 1, 2)
    return ops.transpose(_apart(keys, heads), order)


def values_by_head(values):
    """Turns float (B, S, K, W) to (B K, S, W)."""
    return _joined(ops.transpose(values, (0, 2, 1, 3)))


def values_by_slot(values, heads):
    """Undoes `values_by_head`.

    Args:
        values: as it returns them.
        heads: int. K.

    Returns:
        Float (B, S, K, W).
    """
    return ops.transpose(_apart(values, heads), (0, 2, 1, 3))


def _joined(tensor):
    return ops.reshape(tensor, (-1, *ops.shape(tensor)[2:]))


def _apart(tensor, heads):
    return ops.reshape(tensor, (-1, heads, *ops.shape(tensor)[1:]))
