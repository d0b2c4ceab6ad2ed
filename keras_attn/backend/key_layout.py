"""How a cache lays keys out, so that no step has to turn all of them."""

import keras
from keras import ops

# PyTorch's fused kernel wants the features of a key side by side. XLA
# multiplies matrices as they lie, and else turns the keys first.
_FEATURES_LAST = keras.backend.backend() == "torch"

KEY_SLOTS_AXIS = 2 if _FEATURES_LAST else 3


def no_keys(rows, heads, slots, width, dtype):
    """Returns zeros for a cache, laid out as `keys_by_head` lays keys out."""
    head = (slots, width) if _FEATURES_LAST else (width, slots)
    return ops.zeros((rows, heads, *head), dtype)


def keys_by_head(keys):
    """Turns float (B, S, K, H) to (B, K, H, S), on PyTorch to (B, K, S, H)."""
    return ops.transpose(keys, (0, 2, 1, 3) if _FEATURES_LAST else (0, 2, 3, 1))


def keys_by_slot(keys):
    """Undoes `keys_by_head`."""
    return ops.transpose(keys, (0, 2, 1, 3) if _FEATURES_LAST else (0, 3, 1, 2))
