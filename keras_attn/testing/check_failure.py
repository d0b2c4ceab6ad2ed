"""The error of a failed check, and the comparison that raises it."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.typing import Tensor, TensorLike


class CheckFailure(AssertionError):
    """A property that does not hold.

    Its message names the property, what was expected, the smallest shapes for
    which it fails, and the difference.

    Args:
        subject: str. Name of the class that was checked.
        check: str. Name of the property, such as `"causality"`.
        reason: str. What was expected.
        shapes: dict of input names to shapes: the smallest that fail.
        difference: float, the largest difference; or None if the failure is not
            a difference between numbers.

    Examples:
        >>> class Mean(keras.layers.Layer):
        ...     def call(self, query, value):
        ...         mean = keras.ops.mean(value, axis=1, keepdims=True)
        ...         return mean + 0 * query
        >>> try:
        ...     keras_attn.testing.check_attention_layer(
        ...         Mean(), only=("padding_invariance",))
        ... except keras_attn.testing.CheckFailure as failure:
        ...     failure.check, failure.shapes["value"]
        ('padding_invariance', (1, 1, 8))
    """

    def __init__(
        self,
        subject: str,
        check: str,
        reason: str,
        shapes: dict[str, Any],
        difference: float | None = None,
    ) -> None:
        self.check = check
        self.reason = reason
        self.shapes = shapes
        self.difference = difference
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        lines = [
            f"`{subject}` fails `{check}`: {reason}.",
            f"Smallest failing shapes: {listed}.",
        ]
        if difference is not None:
            lines.append(f"Largest difference: {difference:.3g}.")
        super().__init__("\n".join(lines))


class Mismatch(Exception):
    """A property that does not hold for inputs of one size.

    Args:
        reason: str. What was expected.
        difference: float or None, as in `CheckFailure`.
    """

    def __init__(self, reason: str, difference: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.difference = difference


def compare(
    actual: TensorLike, expected: TensorLike, tolerance: float, reason: str
) -> None:
    """Raises `Mismatch` unless two arrays are equal up to rounding.

    Args:
        actual: float array.
        expected: float array of the same shape, or 0.
        tolerance: float, relative to the largest expected value or, if that is
            below 1, absolute.
        reason: str. What was expected.
    """
    expected = np.asarray(expected, "float32")
    if expected.ndim and actual.shape != expected.shape:
        raise Mismatch(
            f"{reason} (shape {actual.shape} instead of {expected.shape})"
        )
    if not actual.size:
        return
    if not np.isfinite(actual).all():
        raise Mismatch(f"{reason} (it is NaN or infinite)", float("inf"))
    difference = float(np.abs(actual - expected).max())
    if difference > tolerance * max(1.0, float(np.abs(expected).max())):
        raise Mismatch(reason, difference)


def require(condition: TensorLike, reason: str) -> None:
    """Raises `Mismatch` unless a condition holds."""
    if not condition:
        raise Mismatch(reason)


def values(tensor: TensorLike) -> Tensor:
    """Returns a tensor as a float32 NumPy array."""
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))


def dtype_of(tensor: TensorLike) -> str:
    """Returns the dtype of a tensor as a str."""
    return keras.backend.standardize_dtype(tensor.dtype)
