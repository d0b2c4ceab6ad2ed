"""Sequences that end with a query, whose answer is one of their tokens."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn.datasets.token_ids import (
    FIRST_ID,
    PAD_ID,
    check_size,
    draw_rows,
    permutations,
)


class RecallSequences(NamedTuple):
    """Sequences that end with a query, and the token to recall.

    A causal model such as `GPT` reads `tokens` and learns `labels`, of which
    the loss ignores all but the last. A model that returns one prediction per
    sequence learns `answers`.

    Args:
        tokens: int32 (N, L). Ids from 4; the last token is the query.
        labels: int32 (N, L). The answer at the last position, 0 (padding)
            elsewhere.
        answers: int32 (N,). The id of the answer.
        positions: int32 (N,). The index of the answer in `tokens`: where the
            attention of the last position should be.

    Examples:
        >>> data = keras_attn.datasets.make_lookup_task(100)
        >>> rows = np.arange(100)
        >>> bool((data.tokens[rows, data.positions] == data.answers).all())
        True
    """

    tokens: Any
    labels: Any
    answers: Any
    positions: Any


def make_lookup_task(
    n: int,
    *,
    num_pairs: int = 6,
    num_keys: int = 12,
    num_values: int = 8,
    seed: int = 0,
    split: str = "train",
) -> RecallSequences:
    """Makes sequences of keys and values, and asks for the value of a key.

        k3 v5 k7 v1 k1 v5 ... k7   ->   v1

    Also called associative recall. The model must find the query among the keys
    and read what follows it, so the right attention is known: all of it on the
    pair `positions // 2`. The keys of a sequence are different; values may
    repeat. All keys, values and positions are equally likely.

    Keys have the ids from 4, values those from 4 + `num_keys`; the vocabulary
    size is `num_keys + num_values + 4`. With the default sizes there are 1e12
    sequences. Of all sequences, 1 in 20 is held out for the test split and 1 in
    20 for the validation split, by a hash of the tokens.

    For a layer with separate queries, keys and values, take
    `tokens[:, -1:]`, `tokens[:, :-1:2]` and `tokens[:, 1::2]`.

    Args:
        n: int >= 0. N, number of sequences.
        num_pairs: int >= 1. P, keys in a sequence, at most `num_keys`. Default
            6.
        num_keys: int >= 1. Number of different keys. Default 12.
        num_values: int >= 1. Number of different values. Default 8.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        `RecallSequences`, with L = 2 P + 1.

    Raises:
        ValueError: an argument is invalid, or no sequence belongs to the split.

    Examples:
        >>> data = keras_attn.datasets.make_lookup_task(1, num_pairs=3)
        >>> data.tokens
        array([[10, 17, 15, 18,  7, 20,  7]], dtype=int32)
        >>> data.answers, data.positions
        (array([20], dtype=int32), array([5], dtype=int32))
    """
    check_size("num_keys", num_keys)
    check_size("num_values", num_values)
    check_size("num_pairs", num_pairs, most=num_keys)

    def draw(random, count):
        keys = permutations(random, count, num_keys)[:, :num_pairs]
        values = random.integers(num_values, (count, num_pairs))
        chosen = random.integers(num_pairs, count)
        tokens = np.empty((count, 2 * num_pairs + 1), "int32")
        tokens[:, :-1:2] = FIRST_ID + keys
        tokens[:, 1::2] = FIRST_ID + num_keys + values
        tokens[:, -1] = tokens[np.arange(count), 2 * chosen]
        return tokens, 2 * chosen + 1

    return _drawn(n, seed, split, 2 * num_pairs + 1, draw, width=num_keys)


def make_recall_task(
    n: int,
    *,
    length: int = 20,
    num_symbols: int = 8,
    num_distractors: int = 26,
    seed: int = 0,
    split: str = "train",
) -> RecallSequences:
    """Makes sequences with one symbol among distractors, to be recalled.

        d4 d9 s2 d1 d4 ... ?   ->   s2

    A test of memory: the symbol may be at any distance from the query. All
    symbols, distractors and positions are equally likely.

    Symbols have the ids from 4, distractors those from 4 + `num_symbols`, and
    the query the last id; the vocabulary size is
    `num_symbols + num_distractors + 5`. With the default sizes there are 4e27
    sequences. Of all sequences, 1 in 20 is held out for the test split and 1 in
    20 for the validation split, by a hash of the tokens.

    Args:
        n: int >= 0. N, number of sequences.
        length: int >= 2. L, tokens in a sequence, with the query. Default 20.
        num_symbols: int >= 1. Number of different answers. Default 8.
        num_distractors: int >= 1. Number of different distractors. Default 26.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        `RecallSequences`. The distance from the query to the answer is
        `length - 1 - positions`.

    Raises:
        ValueError: an argument is invalid, or no sequence belongs to the split.

    Examples:
        >>> data = keras_attn.datasets.make_recall_task(1, length=6)
        >>> data.tokens
        array([[17,  4, 37, 22, 30, 38]], dtype=int32)
        >>> data.answers, data.positions
        (array([4], dtype=int32), array([1], dtype=int32))
    """
    check_size("length", length, 2)
    check_size("num_symbols", num_symbols)
    check_size("num_distractors", num_distractors)

    def draw(random, count):
        first = FIRST_ID + num_symbols
        tokens = random.integers(num_distractors, (count, length)) + first
        positions = random.integers(length - 1, count)
        symbols = random.integers(num_symbols, count) + FIRST_ID
        tokens[np.arange(count), positions] = symbols
        tokens[:, -1] = first + num_distractors
        return tokens.astype("int32"), positions

    return _drawn(n, seed, split, length, draw)


def _drawn(n, seed, split, length, draw, width=None):
    def content(arrays):
        return arrays[0]

    tokens, positions = draw_rows(n, seed, split, length, draw, content, width)
    answers = tokens[np.arange(n), positions]
    labels = np.full_like(tokens, PAD_ID)
    labels[:, -1] = answers
    return RecallSequences(tokens, labels, answers, positions.astype("int32"))
