"""Pairs of numbers as digits: which of the two is larger?

? 1 0 : 4   >        ? 5 2 : 5 7   <        ? 8 : 8   =
"""

from typing import NamedTuple

import numpy as np

VOCABULARY = ["", "_", "?", ":", *"0123456789"]
PAD, HIDDEN, ASK, BETWEEN, ZERO = range(5)
SIGNS = "<=>"
DIGITS = 3  # of the longest number
LENGTH = 2 + 2 * DIGITS


class NumberPairs(NamedTuple):
    """Holds pairs of numbers.

    Args:
        tokens: int32 (B, `LENGTH`), ids in `VOCABULARY`, padding behind.
        answers: int32 (B,): 0, 1 or 2, a place in `SIGNS`.
        numbers: int (B, 2).
    """

    tokens: np.ndarray
    answers: np.ndarray
    numbers: np.ndarray


def of_numbers(numbers):
    """Returns pairs as a model reads them.

    Args:
        numbers: int (B, 2), from 0 on, of at most `DIGITS` digits.

    Returns:
        `NumberPairs`.

    Raises:
        ValueError: other numbers.
    """
    numbers = np.asarray(numbers)
    if (numbers < 0).any() or (numbers >= 10**DIGITS).any():
        raise ValueError(
            f"Numbers must have at most {DIGITS} digits, and no sign. "
            f"Received: {numbers.min()} to {numbers.max()}"
        )
    tokens = np.zeros((len(numbers), LENGTH), "int32")
    for row, (first, second) in zip(tokens, numbers, strict=True):
        text = f"?{first}:{second}"
        row[: len(text)] = [VOCABULARY.index(sign) for sign in text]
    answers = 1 + np.sign(numbers[:, 0] - numbers[:, 1])
    return NumberPairs(tokens, answers.astype("int32"), numbers)


def draw(count, seed=0):
    """Draws pairs; half have as many digits, the first ones often the same.

    Of numbers drawn by themselves, few would be decided by the last digit.

    Args:
        count: int >= 0. B.
        seed: int. The same seed draws the same. Default 0.

    Returns:
        `NumberPairs`.
    """
    generator = np.random.default_rng(seed)
    digits = generator.integers(1, DIGITS + 1, size=(count, 2))
    alike = generator.random(count) < 0.5
    digits[alike, 1] = digits[alike, 0]
    # The first digit is no 0, unless it is the only one.
    low = np.where(digits == 1, 0, 10 ** (digits - 1))
    numbers = generator.integers(low, 10**digits)
    shared = generator.integers(0, digits[:, 0] + 1)
    tail = 10 ** (digits[:, 0] - shared)
    near = numbers[:, 0] // tail * tail + generator.integers(0, tail)
    alike &= shared > 0
    numbers[alike, 1] = near[alike]
    return of_numbers(numbers)


def hide(pairs, seed=0):
    """Hides digits at random, of each pair another share.

    Args:
        pairs: `NumberPairs`.
        seed: int. Default 0.

    Returns:
        Int32 (B, `LENGTH`), tokens with `HIDDEN` in the place of digits.
    """
    generator = np.random.default_rng(seed)
    share = generator.random((len(pairs.tokens), 1))
    hidden = generator.random(pairs.tokens.shape) < share
    hidden &= pairs.tokens >= ZERO
    return np.where(hidden, HIDDEN, pairs.tokens).astype("int32")


def first_difference(pairs):
    """Returns which digit decides, from 0; -1 where none alone does.

    Args:
        pairs: `NumberPairs`.

    Returns:
        Int (B,): -1 for numbers that are equal, or not of the same length.
    """
    found = np.full(len(pairs.numbers), -1)
    for row, (first, second) in enumerate(pairs.numbers):
        first, second = str(first), str(second)
        if len(first) == len(second):
            different = [a != b for a, b in zip(first, second, strict=True)]
            found[row] = different.index(True) if any(different) else -1
    return found


def text(tokens):
    """Returns the signs of a row of ids, without padding, as a list."""
    return [VOCABULARY[i] for i in tokens if i != PAD]
