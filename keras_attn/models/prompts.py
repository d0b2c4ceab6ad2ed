"""Prompts of a language model as rows of tokens without padding."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.decoding.token_rows import check_form, token_rows
from keras_attn.models.input_checks import check_mask
from keras_attn.typing import Tensor

_NO_ID = -1


def prompt_rows(
    inputs: Sequence[Any], pad_id: int | None, vocabulary_size: int
) -> Tensor:
    """Reads prompts and removes padding on either side.

    Args:
        inputs: list of rows of any length, each a list or an array of ids;
            int (B, S), padded on either side; or a dict with such an array as
            `"token_ids"` and bool (B, S), True at tokens, as `"padding_mask"`.
        pad_id: int, the id of padding tokens; None: there is none.
        vocabulary_size: int. Ids must be less than this.

    Returns:
        NumPy object array (B,), each of its items an int32 array (length,).

    Raises:
        ValueError: inputs of another form, ids out of range, a row without
            tokens, or no rows.

    Examples:
        >>> from keras_attn.models.prompts import prompt_rows
        >>> prompt_rows([[0, 0, 7, 8], [9]], pad_id=0, vocabulary_size=10)
        array([array([7, 8], dtype=int32), array([9], dtype=int32)],
              dtype=object)
    """
    if isinstance(inputs, dict):
        inputs, pad_id = _unmasked(inputs), None
    pad_id = _NO_ID if pad_id is None else pad_id
    rows = token_rows(inputs, pad_id, vocabulary_size)
    for index, row in enumerate(rows):
        rows[index] = row[row != pad_id]
    return rows


def _unmasked(inputs):
    if set(inputs) != {"token_ids", "padding_mask"}:
        raise ValueError(
            "`inputs` must contain token_ids and padding_mask, or be rows of "
            f"ids. Received: a dict with the keys {checks.shown([*inputs])}"
        )
    ids, token_mask = (
        _array(name, inputs[name]) for name in ("token_ids", "padding_mask")
    )
    checks.rank("token_ids", ids, 2)
    token_mask = check_mask(token_mask, ids.shape)
    return [row[mask] for row, mask in zip(ids, token_mask, strict=True)]


def _array(name, value):
    check_form(name, value)
    if not isinstance(value, (list, tuple)):
        return keras.ops.convert_to_numpy(value)
    rows = [list(row) if hasattr(row, "__len__") else row for row in value]
    nested = [row for row in rows if isinstance(row, list)]
    if len(set(map(len, nested))) > 1 or any(
        hasattr(item, "__len__") for row in nested for item in row
    ):
        raise ValueError(
            f"`{name}` must have padded rows of equal length, since it comes "
            "with a mask. Rows without padding need no mask. Received: rows of "
            "different lengths"
        )
    return np.asarray(value)
