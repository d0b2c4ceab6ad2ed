"""permute_tokens: an order for every row, whose last tokens are guessed."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks

_NONE = -1


class PermutedTokens(NamedTuple):
    """Holds an order of the tokens of each row, and what is to be guessed.

    Args:
        order: int32 (B, T), 0 for tokens that are there from the start, then 1,
            2, ... for those that are guessed, when they come.
        target_positions: int32 (B, P), the places of these, from left to right;
            -1 where a row has fewer.
        labels: int32 (B, P), the tokens that stand there; -1 where a row has
            fewer.

    Examples:
        >>> keras_attn.text.PermutedTokens._fields
        ('order', 'target_positions', 'labels')
    """

    order: Any
    target_positions: Any
    labels: Any


def permute_tokens(
    token_ids,
    special_ids=(0,),
    prediction_rate=1 / 6,
    max_span_length=5,
    seed=None,
):
    """Draws a factorisation order for each row, for an `XLNet`.

    Only the last part of an order is guessed, as its first tokens have too
    little to go by (Yang et al. 2019, sec. 2.3, partial prediction): what comes
    first is there at once and sees itself in both directions, then come the
    targets, one by one, in an order of their own. Targets stand in spans of 1
    to `max_span_length` tokens, each somewhere in a stretch that is 1 /
    `prediction_rate` times as long, until the prediction_rate is reached; what
    is lacking then is drawn token by token.

    Args:
        token_ids: int (B, T).
        special_ids: iterable of int. Ids that are never guessed: padding,
            `[CLS]`, `[SEP]`, ... . Default: padding, 0.
        prediction_rate: float in (0, 1). Of the tokens of a row that are not
            special, rounded, and one at least. Default 1 / 6.
        max_span_length: int >= 1. The most tokens of a span. Default 5.
        seed: int >= 0, or `numpy.random.Generator`. None: another draw each
            time.

    Returns:
        `PermutedTokens`: `order` and `target_positions` are inputs of an
        `XLNet`, `labels` are for `SequenceCrossentropy(pad_id=-1)`.

    Raises:
        ValueError: ids of another rank, or arguments out of range.

    Examples:
        >>> drawn = keras_attn.text.permute_tokens(
        ...     [[2, 7, 8, 9, 6, 5, 3, 0]], special_ids=range(5),
        ...     prediction_rate=0.4,
        ...     seed=0)
        >>> sorted(drawn.order[0].tolist())
        [0, 0, 0, 0, 0, 0, 1, 2]
    """
    ids = np.asarray(token_ids)
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise ValueError(
            "`token_ids` must be integers of shape (batch, length). "
            f"Received: {ids.dtype} of shape {ids.shape}"
        )
    if not isinstance(prediction_rate, float) or not 0 < prediction_rate < 1:
        raise ValueError(
            "`prediction_rate` must be a number in (0, 1). Received: "
            f"prediction_rate={prediction_rate!r}"
        )
    checks.positive_int("max_span_length", max_span_length)
    random = np.random.default_rng(seed)
    width = max(1, int(prediction_rate * ids.shape[1] + 0.5))
    order = np.zeros(ids.shape, "int32")
    positions = np.full((len(ids), width), _NONE, "int32")
    labels = np.full((len(ids), width), _NONE, "int32")
    may = ~np.isin(ids, list(special_ids))
    for row, there in enumerate(map(np.flatnonzero, may)):
        if not len(there):
            continue
        count = min(width, max(1, int(prediction_rate * len(there) + 0.5)))
        chosen = _spans(
            len(there), count, prediction_rate, max_span_length, random
        )
        places = there[chosen]
        order[row, places] = 1 + random.permutation(count)
        positions[row, :count] = places
        labels[row, :count] = ids[row, places]
    return PermutedTokens(order, positions, labels)


def _spans(length, count, prediction_rate, max_span_length, random):
    """Chooses `count` of `length` tokens, in spans; sorted."""
    chosen = np.zeros(length, bool)
    start = left = 0
    while start < length and left < count:
        size = min(int(random.integers(1, max_span_length + 1)), count - left)
        stretch = max(size, int(size / prediction_rate))
        begin = start + int(random.integers(stretch - size + 1))
        chosen[begin : begin + size] = True
        left = int(chosen.sum())
        start += stretch
    rest = np.flatnonzero(~chosen)
    chosen[random.permutation(rest)[: count - left]] = True
    return np.flatnonzero(chosen)
