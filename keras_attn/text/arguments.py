"""Argument checks of the text package."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.typing import TensorLike

# Limits far beyond any batch, so that a mistaken number raises an error instead
# of filling the memory: 2**27 ids are 512 MiB of int32.
MOST_IDS, LONGEST_ROW = 2**27, 2**20
_MOST_SPECIAL_IDS = 2**24
_LARGEST_ID = 2**31 - 1
_MOST_AXES = 32
_IDS_AT_ONCE = 2**20  # of a mapped file


def checked_text(name: str, text: str, expected: str = "a str") -> str:
    """Returns `text` if it is a str that UTF-8 can encode, else raises.

    Args:
        name: str. Name of the argument, for error messages.
        text: the text.
        expected: str, for error messages.

    Returns:
        str.

    Raises:
        ValueError: another type, or lone surrogates.
    """
    if not isinstance(text, str):
        raise _wrong_type(name, expected, text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must be valid Unicode text, without lone surrogates. "
            f"Received: {checks.shown(text)}"
        ) from error
    return text


def text_list(
    name: str, texts: Iterable[Any], expected: str = "a str or a list of str"
) -> list[Any]:
    """Converts a list of texts to a list; the texts are not checked.

    Args:
        name: str. Name of the argument, for error messages.
        texts: iterable of str, but no str, dict or set.
        expected: str, for error messages.

    Returns:
        List.

    Raises:
        ValueError: another type.
    """
    if not is_iterable(texts):
        raise _wrong_type(name, expected, texts)
    return list(checks.sized(name, texts))


def text_lines(name: str, lines: Iterable[str]) -> Iterator[Any]:
    """Yields the lines of an iterable of texts, and checks each.

    The iterable itself is checked at once, not at the first line.

    Args:
        name: str. Name of the argument, for error messages.
        lines: iterable of str.

    Returns:
        Iterator of str.

    Raises:
        ValueError: `lines` is a single text or no iterable, or has an item that
            is not a str.
    """
    if isinstance(lines, (str, bytes)):
        raise ValueError(
            f"`{name}` must be an iterable of texts. "
            f"Received: one text {checks.shown(lines)}"
        )
    if not is_iterable(lines):
        raise _wrong_type(name, "an iterable of texts", lines)
    return _checked_lines(name, lines)


def _checked_lines(name, lines):
    for line in lines:
        if not isinstance(line, str):
            raise ValueError(
                f"`{name}` must be an iterable of texts, of str. "
                f"Received: an item of type {type(line).__name__}"
            )
        yield line


def id_list(name: str, ids: TensorLike, size: int) -> list[int]:
    """Converts ids of rank 1 to a list of int in [0, size).

    Args:
        name: str. Name of the argument, for error messages.
        ids: int (L,): iterable of int, array or tensor.
        size: int.

    Returns:
        List of int.

    Raises:
        ValueError: no integers, another rank, or ids out of range.

    Examples:
        >>> from keras_attn.text.arguments import id_list
        >>> id_list("ids", np.array([5, 6]), 7)
        [5, 6]
    """
    ids = plain_ids(name, ids)
    if not {*map(type, ids)} <= {int}:
        ids = [_plain_id(name, number) for number in ids]
    if ids and not 0 <= min(ids) <= max(ids) < size:
        raise ValueError(
            f"`{name}` must lie in [0, {size}). "
            f"Received: ids from {min(ids)} to {max(ids)}"
        )
    return ids


def decode_rows(
    name: str,
    ids: Any,
    size: int,
    end_id: int,
    decode: Callable[..., Any],
    depth: int = 0,
) -> Any:
    """Decodes each row of ids, up to the end id.

    Args:
        name: str. Name of the argument, for error messages.
        ids: iterable, array, tensor or `tf.RaggedTensor` of integers, (..., L).
            Rows of a list may differ in length.
        size: int.
        end_id: int. Ids from its first occurrence on are ignored.
        decode: function of a list of int in [0, size).
        depth: int. Number of axes before those of `ids`.

    Returns:
        The result of `decode` for rank 1, else a (nested) list of them.

    Raises:
        ValueError: no integers, ids out of range, or too many axes.

    Examples:
        >>> from keras_attn.text.arguments import decode_rows
        >>> decode_rows("ids", [[5, 6, 2, 4], [1]], 7, 2, sum)
        [11, 1]
    """
    if depth > _MOST_AXES:
        raise ValueError(
            f"`{name}` must have at most {_MOST_AXES} dimensions. "
            "Received: a list nested more deeply"
        )
    ids = plain_ids(name, ids)
    if any(map(_is_row, ids[:1])):
        return [
            decode_rows(name, row, size, end_id, decode, depth + 1)
            for row in ids
        ]
    ids = id_list(name, ids, size)
    return decode(ids[: ids.index(end_id)] if end_id in ids else ids)


def _is_row(item):
    """Whether an item of a list of ids is itself a list, not one id."""
    return isinstance(item, (list, tuple)) or len(getattr(item, "shape", ()))


def plain_ids(name: str, ids: Any) -> list[Any]:
    """Converts ids of any rank to a list, nested as deeply as the rank.

    Args:
        name: str. Name of the argument, for error messages.
        ids: iterable, array, tensor or `tf.RaggedTensor` of integers.

    Returns:
        List, whose items are not checked.

    Raises:
        ValueError: another type or dtype, or a scalar.
    """
    if isinstance(ids, list):
        return ids
    if hasattr(ids, "to_list"):  # a tf.RaggedTensor
        return ids.to_list()
    if hasattr(ids, "shape"):
        array = to_numpy(name, ids, "a list or an array of integers")
        if array.ndim and (array.dtype.kind in "iu" or not array.size):
            return array.tolist()
        raise ValueError(
            f"`{name}` must be integers, in at least one dimension. "
            f"Received: {array.dtype} of shape {array.shape}"
        )
    if not is_iterable(ids):
        raise _wrong_type(name, "a list or an array of integers", ids)
    return list(checks.sized(name, ids))


def id_array(
    name: str, ids: TensorLike, rank: int, number: int | None = None
) -> np.ndarray:
    """Converts ids to an int32 array.

    Args:
        name: str. Name of the argument, for error messages.
        ids: int, nest of lists, array or tensor, at least 0.
        rank: 1 or 2.
        number: int. The index of `ids` in a list of such arrays, for error
            messages.

    Returns:
        NumPy int32 (length,) or (batch, length).

    Raises:
        ValueError: another rank or type, rows of different lengths, or ids that
            are negative or not int32.
    """
    shape = "(length,)" if rank == 1 else "(batch, length)"
    expected = f"integers of shape {shape}"
    item = "" if number is None else f" as number {number}"
    array = to_numpy(name, ids, expected)
    if array.ndim != rank or array.dtype.kind not in "iu":
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: {array.dtype} of shape {array.shape}{item}"
        )
    if array.size and not 0 <= array.min() <= array.max() <= _LARGEST_ID:
        raise ValueError(
            f"`{name}` must lie in [0, 2**31). "
            f"Received: ids from {array.min()} to {array.max()}{item}"
        )
    return array.astype("int32")


def mapped_ids(
    name: str, ids: TensorLike, number: int | None = None
) -> np.ndarray:
    """Checks ids of rank 1, and leaves those of a mapped file in the file.

    Args:
        name: str. Name of the argument, for error messages.
        ids: int (N,), list, array or tensor, at least 0.
        number: int. As for `id_array`.

    Returns:
        NumPy integers (N,): an array with a file mapped into memory is returned
        as it is, all others as int32.

    Raises:
        ValueError: as for `id_array`.
    """
    if not isinstance(ids, np.memmap):
        return id_array(name, ids, rank=1, number=number)
    for begin in range(0, max(len(ids), 1), _IDS_AT_ONCE):
        id_array(name, ids[begin : begin + _IDS_AT_ONCE], 1, number)
    return ids


def to_numpy(name: str, value: Any, expected: str) -> np.ndarray:
    """Converts nests of lists, arrays and tensors to NumPy arrays.

    Args:
        name: str. Name of the argument, for error messages.
        value: the value.
        expected: str, for error messages.

    Returns:
        NumPy array of any dtype.

    Raises:
        ValueError: a symbolic tensor, or rows of different lengths.
    """
    if isinstance(value, keras.KerasTensor):
        raise _wrong_type(name, expected, value)
    if hasattr(value, "shape"):
        return keras.ops.convert_to_numpy(value)
    try:
        return np.asarray(checks.sized(name, value))
    except (RecursionError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be {expected}. Received: rows of different lengths"
        ) from error


def id_set(name: str, ids: Iterable[int]) -> list[int]:
    """Converts an iterable of ids to a list of int.

    Args:
        name: str. Name of the argument, for error messages.
        ids: iterable of int, at least 0.

    Returns:
        List of int.

    Raises:
        ValueError: no iterable, or an item that is not an id.
    """
    expected = "an iterable of integers"
    if not is_iterable(ids) and not isinstance(ids, Set):
        raise _wrong_type(name, expected, ids)
    if hasattr(ids, "shape"):
        ids = plain_ids(name, ids)
    found = list(itertools.islice(ids, _MOST_SPECIAL_IDS + 1))
    if len(found) > _MOST_SPECIAL_IDS:
        raise ValueError(
            f"`{name}` must have at most 2**24 ids. Received: more"
        )
    found = [_plain_id(name, number) for number in found]
    if found and not 0 <= min(found) <= max(found) <= _LARGEST_ID:
        raise ValueError(
            f"`{name}` must lie in [0, 2**31). "
            f"Received: ids from {min(found)} to {max(found)}"
        )
    return found


def one_id(name: str, value: Any) -> int:
    """Returns an id, an int in [0, 2**31), else raises ValueError."""
    return checks.integer(name, value, 0, _LARGEST_ID)


def rate(name: str, value: Any) -> float:
    """Returns a float in (0, 1), else raises ValueError."""
    if not isinstance(value, float) or not 0 < value < 1:
        raise ValueError(
            f"`{name}` must be a number in (0, 1). "
            f"Received: {name}={checks.shown(value)}"
        )
    return value


def random_generator(
    name: str, seed: int | Sequence[int] | np.random.Generator | None
) -> np.random.Generator:
    """Creates a random generator.

    Args:
        name: str. Name of the argument, for error messages.
        seed: int >= 0, tuple or list of them, `numpy.random.Generator`, or
            None.

    Returns:
        `numpy.random.Generator`.

    Raises:
        ValueError: another type, or a negative integer.
    """
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    several = isinstance(seed, (tuple, list)) and len(seed) > 0
    for part in seed if several else [seed]:
        integer = isinstance(part, (int, np.integer))
        if not integer or isinstance(part, bool) or part < 0:
            raise ValueError(
                f"`{name}` must be an integer >= 0, a tuple of them, a "
                "`numpy.random.Generator` or None. "
                f"Received: {name}={checks.shown(seed)}"
            )
    return np.random.default_rng(seed)


def batch_shape(length: int, batch_size: int) -> None:
    """Raises ValueError unless a batch of this shape fits into memory."""
    checks.positive_int("length", length, most=None)
    checks.positive_int("batch_size", batch_size, most=None)
    if length * batch_size > MOST_IDS:
        raise ValueError(
            f"`length` times `batch_size` must be at most {MOST_IDS}. "
            f"Received: length={length}, batch_size={batch_size}"
        )


def is_iterable(value: Any) -> bool:
    """Whether a value is an iterable of items in a certain order."""
    return (
        isinstance(value, Iterable)
        and not isinstance(
            value, (str, bytes, bytearray, Mapping, Set, keras.KerasTensor)
        )
        and getattr(value, "ndim", 1) != 0
    )


def _plain_id(name, number):
    """Returns an integer, of NumPy or of a tensor too, as an int."""
    if type(number) is int:
        return number
    if not isinstance(number, bool):
        if isinstance(number, (int, np.integer)):
            return int(number)
        if getattr(number, "shape", None) == ():
            array = keras.ops.convert_to_numpy(number)
            if array.dtype.kind in "iu":
                return int(array)
    raise ValueError(
        f"`{name}` must hold integers. "
        f"Received: an item of type {type(number).__name__}"
    )


def _wrong_type(name, expected, value):
    return ValueError(
        f"`{name}` must be {expected}. "
        f"Received: {name} of type {type(value).__name__}"
    )
