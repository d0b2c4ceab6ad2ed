"""Ragged rows of token ids, and their padding."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.typing import Tensor, TensorLike

# Rows are padded to these lengths: few, since each one compiles another
# program, and densest at typical sentence lengths.
_LENGTHS = (16, 32, 96, 320, 1024)
_GROWTH = 3
_NESTED = (list, tuple, dict, set, str, bytes, np.ndarray)


def token_rows(
    inputs: Sequence[Any], pad_id: int, vocabulary_size: int | None = None
) -> Tensor:
    """Converts rows of token ids to arrays without trailing padding.

    Args:
        inputs: list of rows of any length, each a list or an array of ints;
            or int (B, S), array or tensor, with shorter rows padded with
            `pad_id`.
        pad_id: int. Padding id.
        vocabulary_size: int. Exclusive upper bound of the ids; None: unknown.

    Returns:
        NumPy object array (B,) of int32 arrays (length,).

    Raises:
        ValueError: rows that are not lists of ids, ids out of range, a row
            without a token, or no rows.
    """
    check_form("inputs", inputs)
    if not isinstance(inputs, (list, tuple)):
        inputs = ops.convert_to_numpy(inputs)
        checks.rank("inputs", inputs, 1 if inputs.dtype == object else 2)
    if not len(inputs):
        raise ValueError(
            "`inputs` must hold at least one row. Received: none at all"
        )
    rows = np.empty(len(inputs), object)
    for number, row in enumerate(inputs):
        rows[number] = _row(number, row, pad_id)
    low = min(int(row.min()) for row in rows)
    high = max(int(row.max()) for row in rows)
    if low < 0 or (vocabulary_size is not None and high >= vocabulary_size):
        limit = "" if vocabulary_size is None else f", {vocabulary_size}"
        raise ValueError(
            f"`inputs` must lie in [0{limit}). "
            f"Received: ids from {low} to {high}"
        )
    for number, row in enumerate(rows):
        rows[number] = row.astype("int32")
    return rows


def check_form(name: str, inputs: TensorLike) -> None:
    """Raises ValueError unless inputs are a list or an array.

    Args:
        name: str. Name of the argument, for error messages.
        inputs: any object.
    """
    rows = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    if any(isinstance(row, (str, bytes)) for row in rows):
        raise ValueError(
            f"`{name}` must be rows of token ids, not text. Encode each text "
            "with the `encode` of a tokenizer first. "
            f"Received: {checks.shown(inputs)}"
        )
    if any(isinstance(row, keras.KerasTensor) for row in rows):
        raise ValueError(
            f"`{name}` must have values, which a symbolic tensor has not. Call "
            "this method on arrays, outside of functional models. "
            f"Received: {checks.shown(inputs)}"
        )
    kind = type(inputs).__name__
    if hasattr(inputs, "row_splits") or getattr(inputs, "is_nested", False):
        raise ValueError(
            f"`{name}` must be a list of rows or a padded array. Convert a "
            "ragged tensor to a list: `x.to_list()` in TensorFlow, "
            f"`list(x.unbind())` in PyTorch. Received: {name} of type {kind}"
        )
    if not isinstance(inputs, (list, tuple)):
        expected = "rows of token ids: an int array (batch, length), or a list"
        checks.tensor(name, inputs, f"{expected} of lists", objects=True)
        if "sparse" in kind.lower():
            raise ValueError(
                f"`{name}` must be {expected} of lists. "
                f"Received: {name} of type {kind}"
            )


def are_token_rows(inputs: TensorLike) -> bool:
    """Returns whether `inputs` is a list of token rows."""
    return isinstance(inputs, list) and all(
        np.ndim(row) == 1 if hasattr(row, "shape") else _is_list_of_ids(row)
        for row in inputs
    )


def padded(rows: TensorLike, pad_id: int, limit: int | None = None) -> Tensor:
    """Pads rows to one array, of one of a few lengths.

    Args:
        rows: object array (n,), as returned by `token_rows`.
        pad_id: int.
        limit: int >= the longest row. Maximum length. Default: no limit.

    Returns:
        NumPy int32 (n, length).
    """
    length = few_lengths(max(map(len, rows)), limit)
    ids = np.full((len(rows), length), pad_id, "int32")
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids


def few_lengths(length: int, limit: int | None = None) -> int:
    """Returns the length to which rows of `length` tokens are padded."""
    for found in _LENGTHS:
        if length <= found:
            break
    while found < length:
        found *= _GROWTH
    return found if limit is None else min(found, limit)


def _is_list_of_ids(row):
    return isinstance(row, (list, tuple)) and not any(
        hasattr(item, "__len__") for item in row
    )


def _row(number, row, pad_id):
    if hasattr(row, "shape") and not isinstance(row, np.ndarray):
        row = ops.convert_to_numpy(row)
    if isinstance(row, np.ndarray):
        is_row = row.ndim == 1
    else:
        is_row = isinstance(row, (list, tuple)) and not any(
            issubclass(kind, _NESTED) for kind in set(map(type, row))
        )
    if not is_row:
        raise ValueError(
            "`inputs` must be rows of token ids: shape (batch, length), or a "
            f"list of lists. Received: {checks.shown(row)} for row {number}"
        )
    row = np.asarray(row)
    if row.size and row.dtype.kind not in "iu":
        raise ValueError(
            "`inputs` must hold integers (int32). "
            f"Received: dtype {row.dtype} in row {number}"
        )
    real = np.flatnonzero(row != pad_id)
    if not real.size:
        came = "nothing but padding" if row.size else "nothing"
        raise ValueError(
            "`inputs` must hold a token in every row. "
            f"Received: {came} in row {number}"
        )
    return row[: real[-1] + 1]
