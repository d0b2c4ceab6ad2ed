"""permute_tokens: random factorization orders for XLNet."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.typing import TensorLike

_NONE, _FARTHEST = -1, 2**31


class PermutedTokens(NamedTuple):
    """A factorization order for each row, with its prediction targets.

    Args:
        order: int32 (B, T), 0 for context tokens, then 1, 2, ... for targets,
            in the order in which they are predicted.
        target_positions: int32 (B, P), the positions of the targets, from left
            to right; -1 where a row has fewer.
        labels: int32 (B, P), the tokens at these positions; -1 where a row has
            fewer.

    Examples:
        >>> keras_attn.text.PermutedTokens._fields
        ('order', 'target_positions', 'labels')
    """

    order: Any
    target_positions: Any
    labels: Any


def permute_tokens(
    token_ids: TensorLike,
    special_ids: Iterable[int] = (0,),
    prediction_rate: float = 1 / 6,
    max_span_length: int = 5,
    seed: int | tuple[int, ...] | np.random.Generator | None = None,
) -> PermutedTokens:
    """Draws a factorization order for each row, for an `XLNet`.

    Only the last part of an order is predicted, as its first tokens have too
    little context (Yang et al. 2019, sec. 2.3, partial prediction): the context
    tokens come first and attend to each other in both directions; the targets
    follow one by one, in random order. Targets form spans of 1 to
    `max_span_length` tokens, each at a random offset in a stretch 1 /
    `prediction_rate` times as long, until `prediction_rate` is reached; any
    targets still missing are drawn as single tokens.

    Args:
        token_ids: int (B, T).
        special_ids: iterable of int. Ids that are never predicted: padding,
            `[CLS]`, `[SEP]`, ... . Default: padding, 0.
        prediction_rate: float in (0, 1). Fraction of the tokens of a row that
            are not special, rounded, and at least one token. Default 1 / 6.
        max_span_length: int >= 1. Maximum tokens per span. Default 5.
        seed: int >= 0, tuple of them, or `numpy.random.Generator`. None: a
            different draw each time.

    Returns:
        `PermutedTokens`: `order` and `target_positions` are inputs of an
        `XLNet`, `labels` are for `SequenceCrossentropy(pad_id=-1)`.

    Raises:
        ValueError: ids of the wrong rank, or arguments out of range.

    Examples:
        >>> drawn = keras_attn.text.permute_tokens(
        ...     [[2, 7, 8, 9, 6, 5, 3, 0]], special_ids=range(5),
        ...     prediction_rate=0.4,
        ...     seed=0)
        >>> sorted(drawn.order[0].tolist())
        [0, 0, 0, 0, 0, 0, 1, 2]
    """
    ids = arguments.id_array("token_ids", token_ids, rank=2)
    special_ids = arguments.id_set("special_ids", special_ids)
    arguments.rate("prediction_rate", prediction_rate)
    checks.integer("max_span_length", max_span_length, 1, _FARTHEST)
    random = arguments.random_generator("seed", seed)
    width = max(1, int(prediction_rate * ids.shape[1] + 0.5))
    order = np.zeros(ids.shape, "int32")
    positions = np.full((len(ids), width), _NONE, "int32")
    labels = np.full((len(ids), width), _NONE, "int32")
    may = ~np.isin(ids, special_ids)
    for row, candidates in enumerate(map(np.flatnonzero, may)):
        size = len(candidates)
        if not size:
            continue
        count = min(width, max(1, int(prediction_rate * size + 0.5)))
        chosen = _spans(size, count, prediction_rate, max_span_length, random)
        targets = candidates[chosen]
        order[row, targets] = 1 + random.permutation(count)
        positions[row, :count] = targets
        labels[row, :count] = ids[row, targets]
    return PermutedTokens(order, positions, labels)


def _spans(length, count, prediction_rate, max_span_length, random):
    """Chooses `count` of `length` tokens, in spans; sorted indices."""
    chosen = np.zeros(length, bool)
    start = left = 0
    while start < length and left < count:
        size = min(int(random.integers(1, max_span_length + 1)), count - left)
        stretch = max(size, int(min(size / prediction_rate, _FARTHEST)))
        begin = start + int(random.integers(stretch - size + 1))
        chosen[begin : begin + size] = True
        left = int(chosen.sum())
        start += stretch
    rest = np.flatnonzero(~chosen)
    chosen[random.permutation(rest)[: count - left]] = True
    return np.flatnonzero(chosen)
