"""mask_tokens: BERT's random token masking."""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.typing import TensorLike

# Fractions of the chosen tokens that become the mask and a random token; the
# rest is unchanged.
_MASKED, _OTHER = 0.8, 0.1
_NONE = -1


class MaskedTokens(NamedTuple):
    """Masked rows with the positions and labels of the predictions.

    Args:
        token_ids: int32 (B, T), the model input.
        positions: int32 (B, P), the positions to predict, in order; 0 where a
            row has fewer.
        labels: int32 (B, P), the original tokens there; -1 where a row has
            fewer.

    Examples:
        >>> keras_attn.text.MaskedTokens._fields
        ('token_ids', 'positions', 'labels')
    """

    token_ids: Any
    positions: Any
    labels: Any


def mask_tokens(
    token_ids: TensorLike,
    vocabulary_size: int,
    mask_id: int,
    special_ids: Iterable[int] = (0,),
    mask_rate: float = 0.15,
    continuations: bool | None = None,
    max_predictions: int | None = None,
    seed: int | tuple[int, ...] | np.random.Generator | None = None,
) -> MaskedTokens:
    """Masks random tokens for masked language modeling.

    In each row a fraction `mask_rate` of the tokens that are neither special
    nor padding is chosen, rounded, and at least one. Of these, 80 % become the
    mask, 10 % a random token that is not special, and 10 % are unchanged
    (Devlin et al. 2019, sec. 3.1 and A.1, https://arxiv.org/abs/1810.04805).

    Args:
        token_ids: int (B, T).
        vocabulary_size: int. V.
        mask_id: int. The id of `[MASK]`.
        special_ids: iterable of int. Ids that are never masked nor drawn as a
            random token: padding, `[CLS]`, `[SEP]`, ... . Default: padding, 0.
        mask_rate: float in (0, 1). Default 0.15.
        continuations: bool (V,), True for pieces that continue a word, such as
            `##ing`. If given, whole words are chosen and all their pieces
            masked together, as long as `mask_rate` is not exceeded. Default
            None: pieces are chosen independently.
        max_predictions: int. P, the maximum number of masked tokens per row.
            Default: `mask_rate` times T.
        seed: int >= 0, tuple of them, or `numpy.random.Generator`. None: a
            different draw each time.

    Returns:
        `MaskedTokens`, whose `positions` and `labels` are for `BertPretrainer`
        and `SequenceCrossentropy(pad_id=-1)`.

    Raises:
        ValueError: ids of the wrong rank or out of range, or arguments out of
            range.

    Examples:
        >>> masked = keras_attn.text.mask_tokens(
        ...     [[2, 7, 8, 9, 3, 0]], 12, mask_id=4, special_ids=range(5),
        ...     mask_rate=0.4, seed=1)
        >>> masked.labels.shape, bool((masked.labels > 4).any())
        ((1, 2), True)
    """
    ids, hidden = _checked(token_ids, vocabulary_size, mask_id, special_ids)
    arguments.rate("mask_rate", mask_rate)
    if max_predictions is None:
        max_predictions = max(1, int(_rounded(mask_rate * ids.shape[1])))
    checks.integer("max_predictions", max_predictions, 1, arguments.LONGEST_ROW)
    random = arguments.random_generator("seed", seed)
    may = ~np.isin(ids, hidden)
    maskable = may.sum(axis=1)
    counts = np.minimum(
        np.maximum(_rounded(mask_rate * maskable), maskable > 0),
        max_predictions,
    )
    if continuations is None:
        chosen = _pieces(may, counts, random)
    else:
        continues = _continuations(continuations, vocabulary_size)
        words = _words(may, continues[ids])
        chosen = _whole(words, counts, random)
    draw = functools.partial(_drawn, vocabulary_size, hidden, random)
    return _hidden(ids, chosen, max_predictions, mask_id, draw, random)


def _checked(token_ids, vocabulary_size, mask_id, special_ids):
    """Returns ids, and the set of ids that are neither masked nor drawn."""
    checks.integer("vocabulary_size", vocabulary_size, 1, 2**31)
    ids = arguments.id_array("token_ids", token_ids, rank=2)
    special_ids = arguments.id_set("special_ids", special_ids)
    checks.integer("mask_id", mask_id)
    for name, values in (
        ("token_ids", ids),
        ("mask_id", np.asarray([mask_id])),
        ("special_ids", np.asarray(special_ids)),
    ):
        if values.size and not (
            0 <= values.min() and values.max() < vocabulary_size
        ):
            raise ValueError(
                f"`{name}` must lie in [0, {vocabulary_size}). "
                f"Received: ids from {values.min()} to {values.max()}"
            )
    hidden = {*special_ids, mask_id}
    if len(hidden) == vocabulary_size:
        raise ValueError(
            "`special_ids` must not cover the whole vocabulary. Received: all "
            f"of [0, {vocabulary_size})"
        )
    return ids, sorted(hidden)


def _continuations(continuations, vocabulary_size):
    """Returns bool (V,), or raises ValueError."""
    array = arguments.to_numpy(
        "continuations", continuations, "an array of bool"
    )
    if array.shape != (vocabulary_size,) or array.dtype.kind not in "biu":
        raise ValueError(
            "`continuations` must have one bool per id, of shape "
            f"({vocabulary_size},). "
            f"Received: {array.dtype} of shape {array.shape}"
        )
    return array.astype(bool)


def _drawn(vocabulary_size, hidden, random, count):
    """Draws ids that are not hidden, without a list of the others."""
    drawn = random.integers(0, vocabulary_size - len(hidden), count)
    # Of the i smallest hidden ids, hidden[i] - i other ids are below the next.
    below = np.asarray(hidden) - np.arange(len(hidden))
    return drawn + np.searchsorted(below, drawn, side="right")


def _rounded(numbers):
    return np.floor(np.asarray(numbers) + 0.5).astype(int)[()]


def _pieces(may, counts, random):
    """Chooses `counts` positions per row, bool (B, T)."""
    draws = np.where(may, random.random(may.shape), 2.0)
    ranks = draws.argsort(axis=1).argsort(axis=1)
    return ranks < counts[:, None]


def _words(may, continues):
    """Numbers the words of each row, int (B, T); -1 where there is none."""
    before = np.pad(may[:, :-1], ((0, 0), (1, 0)))
    starts = may & ~(continues & before)
    return np.where(may, starts.cumsum(axis=1) - 1, _NONE)


def _whole(words, counts, random):
    """Chooses words, up to `counts` positions per row, bool (B, T)."""
    chosen = np.zeros(words.shape, bool)
    for row, count, taken in zip(words, counts, chosen, strict=True):
        sizes = np.bincount(row[row >= 0])
        for word in random.permutation(len(sizes)):
            if sizes[word] <= count:
                taken |= row == word
                count -= sizes[word]
    return chosen


def _hidden(ids, chosen, width, mask_id, draw, random):
    rows, indices = np.nonzero(chosen)
    counts = chosen.sum(axis=1)
    columns = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
    positions = np.zeros((len(ids), width), "int32")
    labels = np.full((len(ids), width), _NONE, "int32")
    original = ids[rows, indices]
    positions[rows, columns] = indices
    labels[rows, columns] = original
    draws = random.random(len(rows))
    others = draw(len(rows))
    masked = ids.copy()
    masked[rows, indices] = np.where(
        draws < _MASKED,
        mask_id,
        np.where(draws < _MASKED + _OTHER, others, original),
    )
    return MaskedTokens(masked, positions, labels)
