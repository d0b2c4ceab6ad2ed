"""A task for encoder and decoder: say digits backwards."""

from typing import NamedTuple

import numpy as np

PAD, START, END = 0, 1, 2
VOCABULARY = 13  # padding, start, end and ten digits


class Digits(NamedTuple):
    """Rows of the task.

    Args:
        sources: int32 (B, S), digits and an end, padding behind.
        reads: int32 (B, S), what the decoder reads: a start, then the digits
            backwards.
        says: int32 (B, S), what it shall say: the same one place on, and an
            end.
    """

    sources: np.ndarray
    reads: np.ndarray
    says: np.ndarray


def draw(count, longest, seed=0):
    """Draws rows of half to all of the longest length, all equally likely.

    Args:
        count: int. B.
        longest: int >= 2. The most digits of a row; S is one more.
        seed: int. The same seed draws the same. Default 0.

    Returns:
        `Digits`.

    Raises:
        ValueError: rows without room for two digits.
    """
    if longest < 2:
        raise ValueError(
            f"`longest` must be at least 2. Received: longest={longest}"
        )
    generator = np.random.default_rng(seed)
    lengths = generator.integers((longest + 1) // 2, longest + 1, size=count)
    digits = generator.integers(END + 1, VOCABULARY, size=(count, longest))
    rows = np.full((3, count, longest + 1), PAD, "int32")
    sources, reads, says = rows
    reads[:, 0] = START
    for row, length in enumerate(lengths):
        sources[row, :length] = digits[row, :length]
        reads[row, 1 : length + 1] = says[row, :length] = digits[row, :length][
            ::-1
        ]
        sources[row, length] = says[row, length] = END
    return Digits(sources, reads, says)


def text(ids):
    """Returns the digits of a row of ids, as one str."""
    return "".join(str(i - END - 1) for i in ids if i > END)
