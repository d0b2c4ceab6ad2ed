"""Tensors whose rank is unknown while TensorFlow traces a function.

If a compiled step receives sample weights of shape (B,) and then (B, T), Keras
lets TensorFlow generalize the step to weights of any rank
(`reduce_retracing=True`, as of Keras 3.15.1).
"""

import keras

from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def known_shape(tensor: TensorLike) -> tuple[int | None, ...] | None:
    """Returns the shape as a tuple of int or None; None if the rank is unknown.

    Args:
        tensor: a tensor of the current backend, or a symbolic one.
    """
    shape = tensor.shape
    return None if getattr(shape, "rank", 0) is None else tuple(shape)


def broadcast_from_left(tensor: TensorLike, like: TensorLike) -> Tensor:
    """Broadcasts a tensor of unknown rank, aligning its first axes.

    TensorFlow only. If the shapes do not fit, the operation raises.

    Args:
        tensor: a tensor of unknown rank, at most that of `like`.
        like: a tensor of known rank.

    Returns:
        A tensor in the shape of `like`.
    """
    missing = tf.maximum(len(like.shape) - tf.rank(tensor), 0)
    ones = tf.ones([missing], "int32")
    full = tf.reshape(tensor, tf.concat([tf.shape(tensor), ones], 0))
    full = tf.broadcast_to(full, tf.shape(like))
    full.set_shape(like.shape)
    return full
