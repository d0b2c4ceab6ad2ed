"""Losses and batches under `tf.distribute`."""

from typing import Any

import keras
from keras import ops

from keras_attn.backend.inspection import is_concrete
from keras_attn.typing import Nest, Tensor, TensorLike

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def divide_over_replicas(
    total: TensorLike, count: TensorLike | None = None
) -> Tensor:
    """Divides a sum by a number of terms, both taken over all replicas.

    Under `tf.distribute` a batch is split between the replicas, which need not
    have the same number of tokens. Keras multiplies the loss of each replica by
    their number, takes the mean weighted by rows, and adds up the gradients
    (as of Keras 3.15.1). So each replica returns the loss of the whole batch
    divided by the number of replicas, with the gradient of its own part.

    Args:
        total: float scalar. The sum of this replica.
        count: float scalar, without a gradient. The number of terms of this
            replica. Default None: the sum is not divided.

    Returns:
        Float scalar, 0 where the number of terms is 0. On one device,
        `total / count`.
    """
    replicas = _num_replicas()
    if replicas == 1:
        return total if count is None else ops.divide_no_nan(total, count)
    context = tf.distribute.get_replica_context()
    if context is None:  # Outside of `strategy.run` Keras scales means only.
        if count is None:
            return total
        return ops.divide_no_nan(total, count) / replicas
    if count is None:
        divisor = tf.ones((), total.dtype)
        whole = context.all_reduce("SUM", tf.stop_gradient(total))
    else:
        parts = [tf.stop_gradient(total), tf.stop_gradient(count)]
        whole, divisor = context.all_reduce("SUM", parts)

    @tf.custom_gradient
    def shared(total):
        del total
        value = tf.math.divide_no_nan(whole, divisor) / replicas
        return value, lambda slope: tf.math.divide_no_nan(slope, divisor)

    return shared(total)


def is_replica_mean(tensor: TensorLike) -> bool:
    """Returns whether a tensor may be a mean of integers over replicas.

    Under `tf.distribute`, Keras infers the shapes of a model from the mean of
    the batches of all replicas, in which ids are float64 (as of Keras 3.15.1).

    Args:
        tensor: a tensor or a symbolic one.

    Returns:
        Bool; always False on JAX and PyTorch.
    """
    return (
        _num_replicas() > 1
        and tf.distribute.in_cross_replica_context()
        and not is_concrete(tensor)
        and keras.backend.standardize_dtype(tensor.dtype) == "float64"
    )


def first_replica(strategy: Any, batch: Nest) -> Nest:
    """Returns the part of a batch that the first replica receives.

    Args:
        strategy: `tf.distribute.Strategy`.
        batch: nest of tensors or of `tf.distribute.DistributedValues`.

    Returns:
        Nest of tensors.
    """

    def first(value):
        if not isinstance(value, tf.distribute.DistributedValues):
            return value
        return strategy.experimental_local_results(value)[0]

    return keras.tree.map_structure(first, batch)


def _num_replicas():
    if keras.backend.backend() != "tensorflow":
        return 1
    return tf.distribute.get_strategy().num_replicas_in_sync
