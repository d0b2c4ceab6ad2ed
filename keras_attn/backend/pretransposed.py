"""Transposes a matrix once, before a loop that multiplies by it."""

import keras
from keras import ops

from keras_attn.typing import Tensor, TensorLike


def pretransposed(matrix: TensorLike) -> Tensor:
    """Transposes a matrix for many products with it.

    XLA transposes the right operand of a product again at every step of a loop
    (as of JAX 0.10.2 and TensorFlow 2.21.0).
    PyTorch multiplies by either layout, so nothing is prepared there.

    Args:
        matrix: float (V, D).

    Returns:
        Float (D, V); () on PyTorch.
    """
    if keras.backend.backend() == "torch":
        return ()
    return ops.transpose(matrix)
