"""Sequences to copy, reverse or sort, for encoder-decoder models."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.datasets.token_ids import (
    END_ID,
    FIRST_ID,
    MASK_ID,
    PAD_ID,
    START_ID,
    check_size,
    draw_rows,
    permutations,
)


class SequencePairs(NamedTuple):
    """Source and target sequences, as an encoder-decoder model reads them.

    Ids: 0 padding, 1 start, 2 end, 3 a masked symbol, symbols from 4.

        source   7 5 9 2 0
        target   1 9 5 7 0
        labels   9 5 7 2 0

    `model.fit((pairs.source, pairs.target), pairs.labels)` trains a
    `Transformer` or a `RecurrentSeq2Seq`. A decoder-only model such as `GPT`
    reads source and target as one sequence; see the example.

    Args:
        source: int32 (N, S). Symbols and the end, then padding.
        target: int32 (N, T). The start and symbols, then padding: what the
            decoder reads.
        labels: int32 (N, T). The same symbols and the end, then padding: the
            next token at each position.

    Examples:
        >>> pairs = keras_attn.datasets.make_reversal_task(100, length=6)
        >>> tokens = np.concatenate([pairs.source, pairs.target], axis=1)
        >>> padding = np.zeros_like(pairs.source)  # The loss ignores it.
        >>> labels = np.concatenate([padding, pairs.labels], axis=1)
        >>> tokens.shape, labels.shape
        ((100, 14), (100, 14))
    """

    source: Any
    target: Any
    labels: Any


def make_copy_task(
    n: int,
    *,
    length: int = 10,
    min_length: int | None = None,
    num_symbols: int = 10,
    seed: int = 0,
    split: str = "train",
) -> SequencePairs:
    """Makes sequences of random symbols, to be copied.

    The simplest test of an encoder-decoder model: its cross-attention must find
    the position of the next symbol. There are `num_symbols ** length` sequences
    of each length; they are drawn independently, so short ones repeat. The
    vocabulary size is `num_symbols + 4`.

    Of all sequences, 1 in 20 is held out for the test split and 1 in 20 for the
    validation split, by a hash of its symbols.

    Args:
        n: int >= 0. N, number of sequences.
        length: int >= 1. Symbols in the longest sequence. Default 10.
        min_length: int >= 1. Symbols in the shortest sequence; all lengths are
            equally likely. Default None: `length`.
        num_symbols: int >= 1. Number of different symbols. Default 10.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        `SequencePairs`, with S = T = `length` + 1.

    Raises:
        ValueError: an argument is invalid, or no sequence belongs to the split.

    Examples:
        >>> pairs = keras_attn.datasets.make_copy_task(2, length=4)
        >>> pairs.source
        array([[12, 13,  4,  7,  2],
               [11, 11,  6,  5,  2]], dtype=int32)
        >>> bool((pairs.source == pairs.labels).all())
        True
    """
    min_length = _lengths(length, min_length, num_symbols)

    def draw(random, count):
        lengths = random.integers(length + 1, count, start=min_length)
        symbols = random.integers(num_symbols, (count, length)) + FIRST_ID
        return _pairs(symbols, lengths, symbols, lengths)

    return _drawn(n, seed, split, length, draw)


def make_reversal_task(
    n: int,
    *,
    length: int = 10,
    min_length: int | None = None,
    num_symbols: int = 10,
    seed: int = 0,
    split: str = "train",
) -> SequencePairs:
    """Makes sequences of random symbols, to be written in reverse order.

    A model must know where a sequence ends, and look at positions that move
    backwards: the cross-attention of a trained model is an antidiagonal. There
    are `num_symbols ** length` sequences of each length; they are drawn
    independently, so short ones repeat. The vocabulary size is
    `num_symbols + 4`.

    Of all sequences, 1 in 20 is held out for the test split and 1 in 20 for the
    validation split, by a hash of the reversed symbols.

    Args:
        n: int >= 0. N, number of sequences.
        length: int >= 1. Symbols in the longest sequence. Default 10.
        min_length: int >= 1. Symbols in the shortest sequence; all lengths are
            equally likely. Default None: `length`.
        num_symbols: int >= 1. Number of different symbols. Default 10, as for
            digits.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        `SequencePairs`, with S = T = `length` + 1.

    Raises:
        ValueError: an argument is invalid, or no sequence belongs to the split.

    Examples:
        >>> pairs = keras_attn.datasets.make_reversal_task(
        ...     3, length=4, min_length=1)
        >>> pairs.source
        array([[ 7, 10, 10,  4,  2],
               [ 8, 10, 13,  4,  2],
               [ 8,  2,  0,  0,  0]], dtype=int32)
        >>> pairs.labels
        array([[ 4, 10, 10,  7,  2],
               [ 4, 13, 10,  8,  2],
               [ 8,  2,  0,  0,  0]], dtype=int32)
    """
    min_length = _lengths(length, min_length, num_symbols)

    def draw(random, count):
        lengths = random.integers(length + 1, count, start=min_length)
        symbols = random.integers(num_symbols, (count, length)) + FIRST_ID
        # Negative indices are those of padding.
        indices = lengths[:, None] - 1 - np.arange(length)
        output = np.take_along_axis(symbols, np.maximum(indices, 0), axis=1)
        return _pairs(symbols, lengths, output, lengths)

    return _drawn(n, seed, split, length, draw)


def make_sorting_task(
    n: int,
    *,
    length: int = 8,
    min_length: int | None = None,
    num_symbols: int = 40,
    max_mask_rate: float = 0.0,
    seed: int = 0,
    split: str = "train",
) -> SequencePairs:
    """Makes sequences of different numbers, to be sorted.

    For each number of the target, the model must find the smallest number of
    the source that is larger than the last one. A source has no number twice,
    so the position of each answer is known. The number k, from 0, has the id
    k + 4; the vocabulary size is `num_symbols + 4`.

    With `max_mask_rate`, some numbers of a source are masked (id 3), and its
    target omits them. A model trained on such sequences can be explained by
    masking parts of its input.

    Of all sets of numbers, 1 in 20 is held out for the test split and 1 in 20
    for the validation split, by a hash of the sorted numbers: no answer of one
    split is an answer of another. There are C(40, 8) = 77 million sets of the
    default sizes; they are drawn independently.

    Args:
        n: int >= 0. N, number of sequences.
        length: int >= 1. Numbers in the longest sequence, at most
            `num_symbols`. Default 8.
        min_length: int >= 1. Numbers in the shortest sequence; all lengths are
            equally likely. Default None: `length`.
        num_symbols: int >= 1. Number of different numbers. Default 40.
        max_mask_rate: float in [0, 1]. Each sequence has a mask rate of its
            own, uniform in [0, `max_mask_rate`). Default 0.0.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        `SequencePairs`, with S = T = `length` + 1.

    Raises:
        ValueError: an argument is invalid, or no sequence belongs to the split.

    Examples:
        >>> pairs = keras_attn.datasets.make_sorting_task(2, length=4)
        >>> pairs.source
        array([[21, 40, 10, 15,  2],
               [10, 24,  7, 35,  2]], dtype=int32)
        >>> pairs.labels
        array([[10, 15, 21, 40,  2],
               [ 7, 10, 24, 35,  2]], dtype=int32)
    """
    min_length = _lengths(length, min_length, num_symbols)
    if length > num_symbols:
        raise ValueError(
            "`length` must be at most `num_symbols`, because no number repeats."
            f" Received: length={length}, num_symbols={num_symbols}"
        )
    checks.between("max_mask_rate", max_mask_rate, 0, 1)

    def draw(random, count):
        lengths = random.integers(length + 1, count, start=min_length)
        numbers = permutations(random, count, num_symbols)[:, :length]
        source = numbers + FIRST_ID
        rates = max_mask_rate * random.uniform((count, 1))
        source[random.uniform((count, length)) < rates] = MASK_ID
        absent = source == MASK_ID
        absent |= np.arange(length) >= lengths[:, None]
        # Sorts what is absent to the end.
        output = np.sort(np.where(absent, FIRST_ID + num_symbols, source))
        return _pairs(source, lengths, output, (~absent).sum(axis=1))

    return _drawn(n, seed, split, length, draw, width=num_symbols)


def _lengths(length, min_length, num_symbols):
    """Checks the sizes and returns the length of the shortest sequence."""
    check_size("length", length)
    check_size("num_symbols", num_symbols)
    if min_length is None:
        return length
    return check_size("min_length", min_length, most=length)


def _pairs(symbols, lengths, output, output_lengths):
    """Returns (source, target, labels) of symbols (C, L) and their numbers."""
    source = _ended(symbols, lengths)
    labels = _ended(output, output_lengths)
    target = np.roll(labels, 1, axis=1)
    target[target == END_ID] = PAD_ID
    target[:, 0] = START_ID
    return source, target, labels


def _ended(symbols, lengths):
    count, length = symbols.shape
    rows = np.full((count, length + 1), PAD_ID, "int32")
    present = np.arange(length) < lengths[:, None]
    rows[:, :-1][present] = symbols[present]
    rows[np.arange(count), lengths] = END_ID
    return rows


def _drawn(n, seed, split, length, draw, width=None):
    def labels(arrays):
        return arrays[2]

    return SequencePairs(
        *draw_rows(n, seed, split, length + 1, draw, labels, width)
    )
