"""Forced prefixes: the tokens that a sequence must begin with."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_attn import checks
from keras_attn.decoding.protocol import end_ids, fill_id
from keras_attn.decoding.token_rows import check_form
from keras_attn.typing import Tensor


def forced_prefix(
    prefix: Sequence[int] | None,
    rows: int,
    max_new_tokens: int,
    model: keras.Model,
    vocabulary_size: int | None = None,
) -> Tensor:
    """Checks prefixes and pads them to one array.

    Args:
        prefix: list of int for all rows, or one list of int per row, of any
            length; or an array, int (P,) or (B, P), with shorter rows padded
            with `pad_id`. None: no prefix.
        rows: int. B.
        max_new_tokens: int. L.
        model: object with `pad_id`, `start_id` and `end_id`.
        vocabulary_size: int. Exclusive upper bound of the ids; None: unknown.

    Returns:
        NumPy int32 (B, L), `pad_id` after the prefix; or None.

    Raises:
        ValueError: a prefix of another form, not of integers, longer than
            `max_new_tokens`, or with ids that are not allowed in it.
    """
    if prefix is None:
        return None
    if not isinstance(prefix, (list, tuple, str, bytes)) and not hasattr(
        prefix, "shape"
    ):
        raise _wrong_form(checks.shown(prefix))
    check_form("prefix", prefix)
    if not isinstance(prefix, (list, tuple)):
        prefix = keras.ops.convert_to_numpy(prefix)
        if prefix.ndim not in (1, 2):
            raise _wrong_form(f"an array of shape {prefix.shape}")
    one_per_row = len(prefix) > 0 and _is_row(prefix[0])
    given = [_row(row) for row in (prefix if one_per_row else [prefix])]
    if len(given) not in (1, rows) or (one_per_row and len(given) != rows):
        raise ValueError(
            f"`prefix` must have one row for all, or one for each of the {rows}"
            f" rows of `inputs`. Received: {len(given)} rows"
        )
    pad_id = fill_id(model)
    forced = np.full((len(given), max_new_tokens), pad_id, "int32")
    for row, tokens in zip(forced, given, strict=True):
        real = np.flatnonzero(tokens != pad_id)
        tokens = tokens[: real[-1] + 1 if real.size else 0]
        _check(tokens, max_new_tokens, model, vocabulary_size)
        row[: len(tokens)] = tokens
    return np.repeat(forced, rows // len(forced), axis=0)


def _is_row(item):
    if hasattr(item, "shape"):
        return len(item.shape) > 0
    return isinstance(item, (list, tuple))


def _row(tokens):
    if hasattr(tokens, "shape"):
        tokens = keras.ops.convert_to_numpy(tokens)
    elif not isinstance(tokens, (list, tuple)) or any(
        issubclass(kind, (list, tuple, dict, set, str, bytes))
        for kind in set(map(type, tokens))
    ):
        raise _wrong_form(checks.shown(tokens))
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
        raise _wrong_form(f"{tokens.dtype} of shape {tokens.shape}")
    return tokens


def _wrong_form(received):
    return ValueError(
        "`prefix` must hold token ids, integers of shape (length,) or (batch, "
        f"length), or be a list of such rows. Received: {received}"
    )


def _check(tokens, max_new_tokens, model, vocabulary_size):
    if len(tokens) > max_new_tokens:
        raise ValueError(
            "`prefix` must not be longer than "
            f"max_new_tokens={max_new_tokens}. "
            f"Received: {len(tokens)} tokens"
        )
    size = np.inf if vocabulary_size is None else vocabulary_size
    outside = tokens[(tokens < 0) | (tokens >= size)]
    if outside.size:
        limit = "" if vocabulary_size is None else f", {vocabulary_size}"
        raise ValueError(
            f"`prefix` must lie in [0{limit}). Received: {outside.tolist()}"
        )
    special = {fill_id(model), model.start_id, *end_ids(model.end_id)}
    wrong = sorted(special.intersection(tokens.tolist()))
    if wrong:
        raise ValueError(
            "`prefix` must hold no end token, no start token, and padding only "
            f"after it. Received: the ids {wrong}"
        )
