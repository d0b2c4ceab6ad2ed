"""Prompts of a language model as rows of tokens without padding."""

import keras
import numpy as np

from keras_attn.decoding.token_rows import token_rows

_NO_ID = -1


def prompt_rows(inputs, pad_id, vocabulary_size):
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
            "ids. "
            f"Received: {' and '.join(inputs)}"
        )
    ids, token_mask = (
        np.asarray(keras.ops.convert_to_numpy(inputs[name]))
        for name in ("token_ids", "padding_mask")
    )
    if ids.ndim != 2 or ids.shape != token_mask.shape:
        raise ValueError(
            "`token_ids` and `padding_mask` must have the same shape (batch, "
            f"length). Received: {ids.shape} and {token_mask.shape}"
        )
    return [
        row[mask]
        for row, mask in zip(ids, token_mask.astype(bool), strict=True)
    ]
