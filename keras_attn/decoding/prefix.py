"""The tokens that a sequence has to begin with, as one array."""

import numpy as np

from keras_attn.decoding.protocol import fill_id


def forced_prefix(prefix, rows, max_new_tokens, model, vocabulary_size=None):
    """Refuses what cannot be a prefix, and brings the others to one shape.

    Args:
        prefix: list of int for all rows, or one list of int for each row, of
            any lengths; or an array, int (P,) or (B, P), with `pad_id` behind
            shorter ones. None: nothing is forced.
        rows: int. B.
        max_new_tokens: int. L.
        model: what has `pad_id`, `start_id` and `end_id`.
        vocabulary_size: int. Ids must be less; None: not known.

    Returns:
        NumPy int32 (B, L), `pad_id` behind the prefix; or None.

    Raises:
        ValueError: a prefix of another form, not of integers, longer than
            `max_new_tokens`, or with ids that cannot stand in it.
    """
    if prefix is None:
        return None
    if not hasattr(prefix, "__len__"):
        raise ValueError(
            "`prefix` must be a list of token ids, or one for each row. "
            f"Received: {prefix!r}"
        )
    one_for_each = len(prefix) > 0 and np.ndim(prefix[0]) > 0
    given = [_row(row) for row in (prefix if one_for_each else [prefix])]
    if len(given) not in (1, rows) or (one_for_each and len(given) != rows):
        raise ValueError(
            f"`prefix` must have one row for all, or one for each of the {rows}"
            f" rows of `inputs`. Received: {len(given)} rows"
        )
    pad_id = fill_id(model)
    forced = np.full((len(given), max_new_tokens), pad_id, "int32")
    for row, tokens in zip(forced, given, strict=True):
        there = np.flatnonzero(tokens != pad_id)
        tokens = tokens[: there[-1] + 1 if there.size else 0]
        _check(tokens, max_new_tokens, model, vocabulary_size)
        row[: len(tokens)] = tokens
    return np.repeat(forced, rows // len(forced), axis=0)


def _row(tokens):
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
        raise ValueError(
            "`prefix` must hold token ids, integers of shape (length,) or "
            f"(batch, length). Received: {tokens.dtype} of shape {tokens.shape}"
        )
    return tokens


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
    special = {fill_id(model), model.start_id, model.end_id}
    wrong = sorted(special.intersection(tokens.tolist()))
    if wrong:
        raise ValueError(
            "`prefix` must hold no end token, no start token, and pad only "
            f"behind it. Received: the ids {wrong}"
        )
