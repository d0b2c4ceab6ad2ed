"""Blockwise attention on TensorFlow, with its own gradient.

The programs are compiled by XLA, in eager mode too: XLA's loops update their
buffers in place, and a softmax is one pass over a block, unlike in TensorFlow's
own loops (as of TensorFlow 2.21.0).
"""

import functools
from typing import TYPE_CHECKING

import tensorflow as tf

from keras_attn.backend.blockwise.online_softmax import backward, forward
from keras_attn.backend.numeric_checks import numerics_are_checked
from keras_attn.typing import Tensor

if TYPE_CHECKING:
    from keras_attn.backend.blockwise.online_softmax import Blocking, Operands


def run(blocking: "Blocking", operands: "Operands") -> Tensor:
    """Computes attention.

    Args:
        blocking: `Blocking`.
        operands: `Operands`.

    Returns:
        Float (I, B * K, G * t, W).
    """
    run_forward, run_backward = _programs(blocking)
    learned = operands.bias is not None

    @tf.custom_gradient
    def attention(query, key, value, *bias):
        given = operands._replace(
            query=query,
            key=key,
            value=value,
            bias=bias[0] if learned else None,
        )
        # Keeps the tape from tracing the loops, which have no gradient
        # (as of TensorFlow 2.21.0).
        stopped = tf.nest.map_structure(_stop_gradient, given)
        output, log_sum = run_forward(stopped)

        def gradient(upstream):
            slopes = run_backward(given, output, log_sum, upstream)
            return slopes if learned else slopes[:3]

        return output, gradient

    bias = [operands.bias] if learned else []
    return attention(operands.query, operands.key, operands.value, *bias)


def _stop_gradient(tensor):
    return None if tensor is None else tf.stop_gradient(tensor)


@functools.lru_cache(maxsize=256)
def _programs(blocking):
    def run_backward(*args):
        return backward(blocking, *args, _pull_back)

    run_forward = functools.partial(forward, blocking)
    return _compiled(run_forward), _compiled(run_backward)


def _compiled(function):
    program = tf.function(function, jit_compile=True, autograph=False)
    return lambda *args: (function if numerics_are_checked() else program)(
        *args
    )


def _pull_back(function, tensor, upstream):
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        result = function(tensor)
    slope = tape.gradient(result, tensor, upstream)
    if slope is None:
        return tf.zeros_like(tensor)
    return tf.convert_to_tensor(slope)
