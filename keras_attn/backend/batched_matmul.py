"""Matrix product per row and head."""

import keras
from keras import ops

from keras_attn.backend.sharding import active_distribution
from keras_attn.typing import Tensor, TensorLike


def batched_matmul(left: TensorLike, right: TensorLike) -> Tensor:
    """Multiplies matrices, per row and head.

    For XLA, rows and heads are merged into one axis, as in a cache: with two
    axes, it would copy the cache's buffer at each step (as of JAX 0.10.2 and
    TensorFlow 2.21.0). Under `keras.distribution` the two are split over
    different devices.

    Args:
        left: float (B, K, M, L).
        right: float (B, K, L, N).

    Returns:
        Float (B, K, M, N).
    """
    if keras.backend.backend() == "torch" or active_distribution() is not None:
        return ops.matmul(left, right)
    shape = *ops.shape(left)[:3], ops.shape(right)[3]
    left, right = (
        ops.reshape(x, (-1, *ops.shape(x)[2:])) for x in (left, right)
    )
    return ops.reshape(ops.matmul(left, right), shape)
