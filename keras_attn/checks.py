"""Argument checks that raise ValueError with the expected and given value."""

import math
import os
import re
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import keras
import numpy as np

from keras_attn.typing import Nest, Tensor


class _ShortRepr(reprlib.Repr):
    def __init__(self):
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 12
        self.maxstring = self.maxother = 200

    def repr_int(self, x, level):
        # Python writes no integers of more than 4,300 digits.
        return repr(x) if x.bit_length() < 300 else f"<{x.bit_length()} bits>"


_repr = _ShortRepr().repr


def shown(value: Any) -> str:
    """Returns a repr in one short line, of nested and large values too."""
    return " ".join(_repr(value).split())


# Scalars of NumPy too.
_NUMBERS = int, float, np.integer, np.floating
# The largest size of an axis: backends index with int32.
_MOST = 2**31 - 1
# More layers would take minutes to create, and no model has as many.
MOST_LAYERS = 10_000


def positive_int(name: str, value: Any, most: float | None = _MOST) -> Any:
    """Returns `value` if it is an int in [1, most], else raises ValueError.

    `most=None` is for numbers for which nothing is allocated.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"The argument `{name}` must be a positive integer. "
            f"Received: {name}={shown(value)}"
        )
    return integer(name, value, 1, most)


def integer(
    name: str,
    value: Any,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Returns `value` if it is an int in [least, most], else raises."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(
            f"`{name}` must be an integer. Received: {name}={shown(value)}"
        )
    if least is not None and value < least:
        raise ValueError(
            f"`{name}` must be at least {least}. "
            f"Received: {name}={shown(value)}"
        )
    if most is not None and value > most:
        raise ValueError(
            f"`{name}` must be at most {most}. Received: {name}={shown(value)}"
        )
    return value


def token_id(
    name: str,
    value: Any,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Checks a token id as `integer` does; it may come from a NumPy array."""
    as_int = int(value) if isinstance(value, np.integer) else value
    integer(name, as_int, least, most)
    return value


def count(
    name: str, value: Any, least: float | None = 1, most: float | None = _MOST
) -> Any:
    """Returns a size in [least, most], else raises ValueError.

    A scalar integer tensor and the symbol of an unknown size are taken too, but
    not compared.
    """
    # First, because Dynamo knows symbols as int only (as of PyTorch 2.13.0).
    if isinstance(value, int):
        return integer(name, value, least, most)
    if keras.ops.is_tensor(value):
        whole = "int" in _dtype(value)
    else:
        whole = not isinstance(value, type) and (
            hasattr(value, "__index__")
            # Symbols of JAX have no `__index__`, as of JAX 0.10.2.
            or hasattr(type(value), "dimension_as_value")
        )
    if not whole or len(getattr(value, "shape", ())):
        raise ValueError(
            f"`{name}` must be an integer. Received: {name}={shown(value)}"
        )
    return value


def boolean(name: str, value: Any) -> Any:
    """Returns `value` if it is a bool, else raises ValueError."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(
            f"`{name}` must be True or False. Received: {name}={shown(value)}"
        )
    return value


def _is_number(value):
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def string(name: str, value: Any) -> Any:
    """Returns `value` if it is a str, else raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(
            f"`{name}` must be a str. Received: {name}={shown(value)}"
        )
    return value


def pattern(name: str, value: Any) -> Any:
    """Compiles a regular expression, or raises ValueError."""
    if isinstance(value, re.Pattern):
        return value
    try:
        return re.compile(string(name, value))
    except re.error as error:
        raise ValueError(
            f"`{name}` must be a regular expression. "
            f"Received: {name}={shown(value)} ({error})"
        ) from error


def path(name: str, value: Any) -> str:
    """Returns a path as a str if `value` is one, else raises ValueError."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value or not _encodable(value):
        raise ValueError(
            f"`{name}` must be a path, a str or `os.PathLike`. "
            f"Received: {name}={shown(value)}"
        )
    return value


def _encodable(path):
    """Whether the operating system may have a file of this name."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def instance(name: str, value: Any, types: Any, expected: str) -> Any:
    """Returns `value` if it is an instance of `types`, else raises.

    `expected` names the types in the message: "a `Visibility`".
    """
    if not isinstance(value, types):
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: {name} of type {type(value).__name__}"
        )
    return value


def tensor(
    name: str,
    value: Any,
    expected: str = "a tensor or an array",
    objects: bool = False,
) -> Any:
    """Returns `value` if it has a shape and a dtype of numbers, else raises.

    `objects=True` also takes an array of objects, such as rows of different
    lengths.
    """
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: {name} of type {type(value).__name__}"
        )
    if (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "OSUMm"
        and not (objects and value.dtype.kind == "O")
    ):
        raise ValueError(
            f"`{name}` must be {expected}, of numbers. "
            f"Received: {name} of dtype {value.dtype.name}"
        )
    return value


def array(name: str, value: Any) -> Tensor:
    """Converts a nest of lists of numbers; tensors and arrays stay.

    Args:
        name: str. Name of the argument, for error messages.
        value: tensor, array, or list or tuple of any depth.

    Returns:
        The tensor, or a NumPy array.

    Raises:
        ValueError: another type, lists of different lengths or too deep, text
            or objects.
    """
    if not isinstance(value, (list, tuple)):
        return tensor(name, value, "a tensor, an array or a nest of lists")
    shape, level = [], _as_lists([value])
    while level and isinstance(level[0], (list, tuple)):
        lengths = sorted({_length(item) for item in level}, key=str)
        if len(lengths) > 1:
            raise ValueError(
                f"`{name}` must have padded rows of equal length. "
                f"Received: lengths {lengths}"
            )
        shape += lengths
        if len(shape) > _MOST_AXES:
            raise ValueError(
                f"`{name}` must be a tensor or a nest of lists. Received: "
                f"{name}={shown(value)}"
            )
        level = _as_lists([item for row in level for item in row])
    return tensor(name, np.asarray(value), "a nest of lists")


# A `range` may be longer than memory.
_MOST_ITEMS = 2**27


def sized(name: str, value: Any) -> Any:
    """Returns `value` unless it is too long to become a list, else raises."""
    stored = hasattr(value, "shape") or isinstance(value, (list, tuple))
    if not stored and hasattr(value, "__len__") and len(value) > _MOST_ITEMS:
        raise ValueError(
            f"`{name}` must have at most {_MOST_ITEMS} items. "
            f"Received: {name}={shown(value)}"
        )
    return value


def iterable(name: str, value: Any, expected: str, sets: bool = False) -> Any:
    """Returns `value` if it is an iterable, else raises ValueError.

    A text, a dict, an array of rank 0 and, unless `sets=True`, a set raise too.
    `expected` describes the value in the message: "a list of str".
    """
    if (
        not isinstance(value, Iterable)
        or isinstance(value, (str, bytes, bytearray, Mapping))
        or (isinstance(value, Set) and not sets)
        or getattr(value, "ndim", 1) == 0
    ):
        raise ValueError(
            f"`{name}` must be {expected}. Received: {name}={shown(value)}"
        )
    return sized(name, value)


def nest(name: str, value: Any) -> Nest:
    """Returns a nest of lists and dicts unless it is too deep, else raises.

    Keras's functions on nests are recursive (as of Keras 3.15.1).
    """
    level = [value]
    for _ in range(_MOST_AXES):
        level = [
            item
            for part in level
            if isinstance(part, (list, tuple, dict))
            for item in (part.values() if isinstance(part, dict) else part)
            if isinstance(item, (list, tuple, dict))
        ]
        if not level:
            return value
    raise ValueError(
        f"`{name}` must be nested at most {_MOST_AXES} times. "
        f"Received: {name}={shown(value)}"
    )


# Of NumPy 1, fewer than those of NumPy 2.
_MOST_AXES = 32


def _as_lists(items):
    """Replaces rows that are arrays, whose lengths may differ, by lists."""
    return [
        item.tolist() if isinstance(item, np.ndarray) else item
        for item in items
    ]


def _length(item):
    return len(item) if isinstance(item, (list, tuple)) else 0


def positive(name: str, value: Any) -> Any:
    """Returns `value` if it is a finite number > 0, else raises ValueError."""
    number = _is_number(value)
    if not number or not 0 < value < math.inf:
        raise ValueError(
            f"`{name}` must be a number greater than 0. "
            f"Received: {name}={shown(value)}"
        )
    return value


def fraction(name: str, value: Any) -> Any:
    """Returns `value` if it is in [0, 1), else raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(
            f"`{name}` must be a number in [0, 1). "
            f"Received: {name}={shown(value)}"
        )
    if not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must lie in [0, 1). Received: {name}={shown(value)}"
        )
    return value


def real(name: str, value: Any) -> Any:
    """Returns `value` if it is a finite number, else raises ValueError."""
    number = _is_number(value)
    if not number or not -math.inf < value < math.inf:
        raise ValueError(
            f"`{name}` must be a finite number. Received: {name}={shown(value)}"
        )
    return value


def between(name: str, value: Any, least: float, most: float | None) -> Any:
    """Returns `value` if it is a number in [least, most], else raises."""
    number = _is_number(value)
    if not number or not least <= value <= most:
        raise ValueError(
            f"`{name}` must be a number in [{least}, {most}]. "
            f"Received: {name}={shown(value)}"
        )
    return value


def choice(name: str, value: Any, options: Collection[Any]) -> Any:
    """Returns `value` if it is one of `options`, else raises ValueError."""
    # An array would be compared item by item.
    if hasattr(value, "shape") or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(
            f"`{name}` must be one of {listed}. Received: {name}={shown(value)}"
        )
    return value


def rank(name: str, tensor: Any, expected: int) -> Any:
    """Returns `tensor` if its rank is `expected`, else raises ValueError."""
    if len(tensor.shape) != expected:
        raise ValueError(
            f"`{name}` must have rank {expected}. "
            f"Received: {name} of shape {tuple(tensor.shape)}"
        )
    return tensor


def width(name: str, shape: Any, expected: int | None) -> Any:
    """Returns `shape` if its last axis is `expected` or None, else raises."""
    if getattr(shape, "rank", 0) is None:
        return shape
    # Not its truth value: that of an empty `TensorShape` is True.
    if not len(shape) or shape[-1] not in (None, expected):
        raise ValueError(
            f"`{name}` must have {expected} features, as when the layer was "
            f"built. Received: {name} of shape {tuple(shape)}"
        )
    return shape


def per_token(name: str, given: Any, rows: Any, length: Any) -> Any:
    """Checks that there is one value per token; a batch axis may be 1."""
    shape = tuple(given.shape)
    if not fits(shape, (rows, length)) and not fits(shape, (1, length)):
        raise ValueError(
            f"`{name}` must have shape {(rows, length)}, one value per token. "
            f"Received: {name} of shape {shape}"
        )
    return given


def fits(shape: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether two shapes agree wherever both are known.

    Sizes that are symbols, as in an exported program, count as unknown.
    """
    return len(shape) == len(expected) and all(
        size == other
        for size, other in zip(shape, expected, strict=True)
        if isinstance(size, int) and isinstance(other, int)
    )


def batch(name: str, shape: Any, expected: Any) -> Any:
    """Returns `shape` if its first axis is `expected` or None, else raises."""
    if not fits(tuple(shape[:1]), (expected,)):
        raise ValueError(
            f"`{name}` must have {expected} rows, like the other inputs. "
            f"Received: {name} of shape {tuple(shape)}"
        )
    return shape


def floats(name: str, tensor: Any) -> Any:
    """Returns `tensor` if its dtype is a float dtype, else raises."""
    dtype = _dtype(tensor)
    if "float" not in dtype:
        raise ValueError(
            f"`{name}` must hold floats. Received: {name} of dtype {dtype}"
        )
    return tensor


_INT32 = np.iinfo("int32")


def int32(name: str, value: Any) -> Any:
    """Returns `value` unless an array has integers past int32, else raises.

    JAX converts int64 to int32, and would wrap them.
    """
    if (
        isinstance(value, np.ndarray)
        and value.dtype.name in ("int64", "uint64", "uint32")
        and value.size
    ):
        low, high = value.min(), value.max()
        if low < _INT32.min or high > _INT32.max:
            raise ValueError(
                f"`{name}` must hold integers that fit int32. "
                f"Received: {name} from {low} to {high}"
            )
    return value


def _dtype(tensor):
    # Not `standardize_dtype`, which knows neither text nor objects.
    dtype = getattr(tensor.dtype, "name", None) or str(tensor.dtype)
    return dtype.removeprefix("torch.")


def seed(name: str, value: Any) -> Any:
    """Returns `value` if it is an int, a `SeedGenerator` or None, else raises.

    Keras creates the generator of a sublayer only when the layer is built.
    """
    if value is not None and not isinstance(value, keras.random.SeedGenerator):
        integer(name, value)
    return value


def no_complex(name: str, tensor: Any) -> Any:
    """Returns `tensor` if its dtype is not complex, else raises."""
    dtype = _dtype(tensor)
    if "complex" in dtype:
        raise ValueError(
            f"`{name}` must hold real numbers. Received: {name} of dtype "
            f"{dtype}"
        )
    return tensor


def integers(name: str, tensor: Any) -> Any:
    """Returns `tensor` if its dtype is an integer dtype, else raises."""
    dtype = _dtype(tensor)
    if "int" not in dtype:
        raise ValueError(
            f"`{name}` must hold integers (int32). "
            f"Received: {name} of dtype {dtype}"
        )
    return tensor
