"""NaN constants and `tf.debugging.enable_check_numerics`.

The check inserts operations into every TensorFlow graph that XLA cannot
compile, and reports NaN and infinity in any operation, even if nothing selects
them (as of TensorFlow 2.21.0).
"""

import contextlib
from collections.abc import Iterator

import keras
from keras import ops

from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "tensorflow":
    # Private: nothing public tells whether the check is enabled,
    # as of TensorFlow 2.21.0.
    from tensorflow.python.eager import context
    from tensorflow.python.framework import op_callbacks


def nan_where(condition: TensorLike, x: TensorLike) -> Tensor:
    """Returns `x`, and NaN where a condition is True.

    Args:
        condition: bool, in a shape that broadcasts to that of `x`.
        x: float tensor.

    Returns:
        Float, in the shape and dtype of `x`.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.where(condition, float("nan"), x)
    # log(-1) is NaN, and only computed where it is wanted.
    return x + ops.log(ops.cast(ops.where(condition, -1.0, 1.0), x.dtype))


def numerics_are_checked() -> bool:
    """Returns whether TensorFlow inserts checks into graphs."""
    return bool(context.context().op_callbacks)


@contextlib.contextmanager
def without_numeric_checks() -> Iterator[None]:
    """Disables the checks, for XLA programs and for scores of -inf."""
    suspended = list(context.context().op_callbacks)
    for callback in suspended:
        op_callbacks.remove_op_callback(callback)
    try:
        yield
    finally:
        for callback in suspended:
            op_callbacks.add_op_callback(callback)
