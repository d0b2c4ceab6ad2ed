"""The product of two matrices for each head of each row."""

import keras
from keras import ops


def batched_matmul(left, right):
    """Multiplies the matrices of each head of each row.

    XLA gets them on one axis, as a cache has them: with two, it would write a
    cache's buffer anew at each step to look at it with two axes.

    Args:
        left: float (B, K, M, L).
        right: float (B, K, L, N).

    Returns:
        Float (B, K, M, N).
    """
    if keras.backend.backend() == "torch":
        return ops.matmul(left, right)
    shape = *ops.shape(left)[:3], ops.shape(right)[3]
    left, right = (
        ops.reshape(x, (-1, *ops.shape(x)[2:])) for x in (left, right)
    )
    return ops.reshape(ops.matmul(left, right), shape)
