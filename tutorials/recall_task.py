"""A task for memories: which capital stood among the small letters?

    q t h C a m m x ... b ?  -> C

The answer may stand at any distance from the question mark.
"""

import string
from typing import NamedTuple

import numpy as np

CAPITALS = string.ascii_uppercase[:8]
SMALL = string.ascii_lowercase
# Ids: 0 to 7 the capitals, then the small letters, then the question mark.
VOCABULARY = CAPITALS + SMALL + "?"


class Recall(NamedTuple):
    """Rows of the task.

    Args:
        tokens: int32 (B, N), the last one the question mark.
        answers: int32 (B,), which capital: 0 to 7.
        distances: int32 (B,), how many tokens before the question mark it
            stands, from 1 to N - 1.
    """

    tokens: np.ndarray
    answers: np.ndarray
    distances: np.ndarray


def draw(count, length, seed=0):
    """Draws rows; all letters and distances are equally likely.

    Args:
        count: int >= 0. B.
        length: int >= 2. N, tokens in a row, the question mark among them.
        seed: int. The same seed draws the same. Default 0.

    Returns:
        `Recall`.

    Raises:
        ValueError: there is no room for a letter and a question mark.
    """
    if count < 0:
        raise ValueError(
            f"`count` must not be negative. Received: count={count}"
        )
    if length < 2:
        raise ValueError(
            "`length` must be at least 2: a letter and a question mark. "
            f"Received: length={length}"
        )
    generator = np.random.default_rng(seed)
    small = len(CAPITALS), len(VOCABULARY) - 1
    tokens = generator.integers(*small, size=(count, length), dtype="int32")
    answers = generator.integers(len(CAPITALS), size=count, dtype="int32")
    distances = generator.integers(1, length, size=count, dtype="int32")
    tokens[:, -1] = len(VOCABULARY) - 1
    tokens[np.arange(count), length - 1 - distances] = answers
    return Recall(tokens, answers, distances)


def text(tokens):
    """Returns the letters of a row of ids, as one str."""
    return "".join(VOCABULARY[i] for i in tokens)


def by_distance(right, distances, edges):
    """Averages over rows of like distance.

    Args:
        right: (B,), what is averaged, such as whether an answer was right.
        distances: int (B,).
        edges: list of int, rising. Group i holds the distances from edges[i]
            on and below edges[i + 1].

    Returns:
        Float (len(edges) - 1,); NaN where there is no row.
    """
    groups = np.digitize(distances, edges) - 1
    counted, summed = (
        np.bincount(
            np.clip(groups, -1, len(edges) - 1) + 1,
            weights=weights,
            minlength=len(edges) + 1,
        )[1:-1]
        for weights in (None, np.asarray(right, "float64"))
    )
    return np.divide(
        summed, counted, out=np.full(len(summed), np.nan), where=counted > 0
    )
