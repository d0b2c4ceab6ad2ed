"""Blockwise attention on TensorFlow, with its own gradient.

The programs are compiled by XLA wherever they are called from: there a loop
writes into its buffers in place, and a softmax is one pass over a block.
"""

import functools

import tensorflow as tf

from keras_attn.backend.blockwise.online_softmax import backward, forward


def run(blocking, operands):
    """Computes attention.

    Args:
        blocking: `Blocking`.
        operands: `Operands`.

    Returns:
        Float (I, B * K, G * t, W).
    """
    ahead, back = _programs(blocking)
    learned = operands.bias is not None

    @tf.custom_gradient
    def attention(query, key, value, *bias):
        given = operands._replace(
            query=query,
            key=key,
            value=value,
            bias=bias[0] if learned else None,
        )
        # The tape need not follow the loops, for which it has no gradient.
        still = tf.nest.map_structure(_still, given)
        output, log_sum = ahead(still)

        def gradient(upstream):
            slopes = back(given, output, log_sum, upstream)
            return slopes if learned else slopes[:3]

        return output, gradient

    bias = [operands.bias] if learned else []
    return attention(operands.query, operands.key, operands.value, *bias)


def _still(tensor):
    return None if tensor is None else tf.stop_gradient(tensor)


@functools.lru_cache(maxsize=256)
def _programs(blocking):
    def back(*args):
        return backward(blocking, *args, _pull_back)

    compiled = functools.partial(tf.function, jit_compile=True, autograph=False)
    return compiled(functools.partial(forward, blocking)), compiled(back)


def _pull_back(function, tensor, upstream):
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        result = function(tensor)
    slope = tape.gradient(result, tensor, upstream)
    if slope is None:
        return tf.zeros_like(tensor)
    return tf.convert_to_tensor(slope)
