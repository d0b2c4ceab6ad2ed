"""Aligning word labels with subword tokens."""

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.typing import Tensor, TensorLike

_NONE = -1
_LONGEST_ROW = 2**20


def align_labels_with_tokens(
    words: TensorLike, labels: TensorLike, length: int | None = None
) -> Tensor:
    """Aligns word labels with word pieces, for a `TokenClassifier`.

    The first piece of each word gets the word's label. All other pieces,
    special tokens and padding get -1, which `SequenceCrossentropy(pad_id=-1)`
    ignores (Devlin et al. 2019, sec. 5.3, https://arxiv.org/abs/1810.04805).
    At inference, read the predictions where this is not -1.

    Args:
        words: B rows of int: for each piece the index of its word in the row,
            from 0, or -1 (or None) for `[CLS]`, `[SEP]` and padding.
        labels: B rows of int >= 0, one per word.
        length: int. T, to which rows are padded with -1. Default: the length
            of the longest row.

    Returns:
        NumPy int32 (B, T).

    Raises:
        ValueError: different numbers of rows, a word without a label, a row
            longer than `length`, or items that are not such integers.

    Examples:
        >>> keras_attn.models.align_labels_with_tokens(
        ...     [[-1, 0, 1, 1, -1]], [[5, 7]])
        array([[-1,  5,  7, -1, -1]], dtype=int32)
    """
    words, labels = _rows("words", words), _rows("labels", labels)
    if len(words) != len(labels) or not words:
        raise ValueError(
            "`words` and `labels` must have the same number of rows, "
            "at least one. "
            f"Received: {len(words)} and {len(labels)}"
        )
    longest = max(map(len, words))
    if length is None:
        length = longest
    checks.positive_int("length", length, most=None)
    checks.integer("length", length, most=_LONGEST_ROW)
    if longest > length:
        raise ValueError(
            f"`words` must not be longer than length={length}. "
            f"Received: a row of {longest} pieces"
        )
    aligned = np.full((len(words), length), _NONE, "int32")
    for row, word_indices, row_labels in zip(
        aligned, words, labels, strict=True
    ):
        row_labels = _integers("labels", row_labels, 0)
        word_indices = [_NONE if i is None else i for i in word_indices]
        previous = _NONE
        for position, index in enumerate(
            _integers("words", word_indices, _NONE)
        ):
            if index >= len(row_labels):
                raise ValueError(
                    "`labels` must have one label per word. "
                    f"Received: {len(row_labels)} labels, and word {index}"
                )
            if index not in (_NONE, previous):
                row[position] = row_labels[index]
            previous = index
    return aligned


def _rows(name, rows):
    """Returns a list of lists, or raises ValueError."""
    found = _plain(rows)
    if isinstance(found, (list, tuple)):
        found = [_plain(row) for row in found]
        if all(isinstance(row, (list, tuple)) for row in found):
            return found
    raise ValueError(
        f"`{name}` must be a list of rows, lists of integers. "
        f"Received: {name} of type {type(rows).__name__}"
    )


def _plain(row):
    if hasattr(row, "shape") and not isinstance(row, keras.KerasTensor):
        return ops.convert_to_numpy(row).tolist()
    return row


def _integers(name, values, least):
    """Returns a list of int in [least, 2**31), or raises ValueError."""
    for value in values:
        # `type` first, as nearly all are of this one.
        if type(value) is not int and (
            isinstance(value, bool) or not isinstance(value, (int, np.integer))
        ):
            break
    else:
        if not values or least <= min(values) <= max(values) < 2**31:
            return values
        value = min(values) if min(values) < least else max(values)
    raise ValueError(
        f"`{name}` must hold integers >= {least}, below 2**31. "
        f"Received: {checks.shown(value)}"
    )
