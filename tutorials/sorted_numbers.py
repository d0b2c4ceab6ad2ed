"""Numbers to be sorted, some of which may be hidden.

7 31 2 18  ->  2 7 18 31            7 _ 2 18  ->  2 7 18
"""

from typing import NamedTuple

import numpy as np

PAD, START, END, HIDDEN, ZERO = range(5)
LARGEST = 39
VOCABULARY = ["", "start", "end", "_", *map(str, range(LARGEST + 1))]


class SortedNumbers(NamedTuple):
    """Holds rows of numbers.

    Args:
        sources: int32 (B, S), no number twice in a row.
        targets: int32 (B, S + 1), the start and the numbers that are seen, in
            their order; padding behind.
        labels: int32 (B, S + 1), the targets without the start, with an end.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray


def draw(count, length, seed=0, hidden=0.0):
    """Draws rows.

    Args:
        count: int >= 0. B.
        length: int >= 1. S, at most `LARGEST` + 1.
        seed: int. The same seed draws the same. Default 0.
        hidden: float in [0, 1]. The largest share of the numbers of a row that
            are hidden; of each row it is another. Default 0.0.

    Returns:
        `SortedNumbers`.
    """
    generator = np.random.default_rng(seed)
    order = generator.random((count, LARGEST + 1)).argsort(axis=1)
    sources = (ZERO + order[:, :length]).astype("int32")
    share = hidden * generator.random((count, 1))
    gone = generator.random(sources.shape) < share
    sources[gone] = HIDDEN
    return SortedNumbers(sources, *_written(sources))


def text(tokens):
    """Returns the names of a row of ids, without padding, as a list."""
    return [VOCABULARY[i] for i in tokens if i != PAD]


def _written(sources):
    count, length = sources.shape
    targets = np.full((count, length + 1), PAD, "int32")
    targets[:, 0] = START
    labels = np.full_like(targets, PAD)
    for row, source in enumerate(sources):
        seen = np.sort(source[source >= ZERO])
        targets[row, 1 : 1 + len(seen)] = seen
        labels[row, : len(seen)] = seen
        labels[row, len(seen)] = END
    return targets, labels
