"""Argument checks of the explain package."""

import operator

import keras
import numpy as np

from keras_attn import checks
from keras_attn.typing import TensorLike


def number_array(
    name: str, value: TensorLike, expected: str = "an array of real numbers"
) -> np.ndarray:
    """Converts an argument to a NumPy array of real numbers.

    Args:
        name: str. Name of the argument, for error messages.
        value: array, tensor or nest of lists.
        expected: str, for error messages.

    Returns:
        NumPy array; bfloat16 becomes float32.

    Raises:
        ValueError: another type, text, objects, complex numbers or rows of
            different lengths.

    Examples:
        >>> from keras_attn.explain.arguments import number_array
        >>> number_array("saliency", [0, 1]).shape
        (2,)
    """
    try:
        array = keras.ops.convert_to_numpy(checks.sized(name, value))
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: {name} of type {type(value).__name__}"
        ) from error
    if array.dtype.name == "bfloat16":
        return array.astype("float32")
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: {name} of type {type(value).__name__}, "
            f"dtype {array.dtype}"
        )
    return array


def is_list(value: TensorLike) -> bool:
    """Whether a value is a list, a tuple or an array with items."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, (list, tuple))


def index(name: str, value: int, count: int, what: str) -> int:
    """Checks an index in [0, count).

    Args:
        name: str. Name of the argument, for error messages.
        value: int, also of NumPy.
        count: int.
        what: str, what is counted, for error messages: "the rows of the maps".

    Returns:
        Int.

    Raises:
        ValueError: not an integer, or out of range.

    Examples:
        >>> from keras_attn.explain.arguments import index
        >>> index("row", np.int64(1), 2, "the rows")
        1
    """
    integer = isinstance(value, (int, np.integer))
    if not integer or isinstance(value, bool):
        raise ValueError(
            f"`{name}` must be an int. Received: {name}={checks.shown(value)}"
        )
    if not 0 <= value < count:
        raise ValueError(
            f"`{name}` must lie in [0, {count}), {what}. "
            f"Received: {name}={value}"
        )
    return operator.index(value)


def real_number(name: str, value: TensorLike) -> float:
    """Returns a number, not NaN and not a bool, else raises ValueError."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or value != value:
        raise ValueError(
            f"`{name}` must be a number. Received: {name}={checks.shown(value)}"
        )
    return value


def checked_probability(name: str, value: TensorLike) -> float:
    """Returns a number in (0, 1) as a float, else raises ValueError."""
    if not 0 < real_number(name, value) < 1:
        raise ValueError(
            f"`{name}` must lie in (0, 1). "
            f"Received: {name}={checks.shown(value)}"
        )
    return float(value)
