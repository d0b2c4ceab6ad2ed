"""A matrix that a loop multiplies by, turned once before the loop."""

import keras
from keras import ops


def pretransposed(matrix):
    """Transposes a matrix for many products with it.

    Where the right side of a product is transposed, XLA turns it anew at every
    step of a loop. PyTorch reads it either way, and gets nothing.

    Args:
        matrix: float (V, D).

    Returns:
        Float (D, V); () on PyTorch.
    """
    if keras.backend.backend() == "torch":
        return ()
    return ops.transpose(matrix)
