"""make_comparison_task: which of two numbers is larger?"""

from typing import Any, NamedTuple

import numpy as np

from keras_attn.datasets.token_ids import (
    END_ID,
    FIRST_ID,
    PAD_ID,
    START_ID,
    check_size,
    draw_rows,
)


class NumberComparisons(NamedTuple):
    """Pairs of numbers as digits, and which of the two is larger.

    Ids: 0 padding, 1 start, 2 the end of a number, 3 for masked digits, which
    there are none of, and 4 to 13 the digits. The vocabulary size is 14.

    Args:
        tokens: int32 (N, L). Start, digits, end, digits, end, then padding.
        labels: int32 (N,). 0: the first number is smaller; 1: they are equal;
            2: it is larger.
        numbers: int32 (N, 2).
        positions: int32 (N, 2). The index in `tokens` of the first digit that
            differs, in either number: the digit that decides. -1 if the numbers
            are equal, or if one has more digits.

    Examples:
        >>> data = keras_attn.datasets.make_comparison_task(100)
        >>> bool((np.sign(data.numbers @ [1, -1]) == data.labels - 1).all())
        True
    """

    tokens: Any
    labels: Any
    numbers: Any
    positions: Any


def make_comparison_task(
    n: int, *, num_digits: int = 3, seed: int = 0, split: str = "train"
) -> NumberComparisons:
    """Makes pairs of numbers, of which a model says which one is larger.

        <start> 5 2 <end> 5 7 <end>   ->   0 (smaller)

    For sequence classification, and for explanations of it: a faithful
    explanation points at the digits that decide. Half of the pairs have as many
    digits in both numbers, most of those with the same first digits. Of numbers
    drawn independently, the last digit would decide few.

    There are `10 ** num_digits` numbers; pairs are drawn independently, so
    short numbers repeat. Of all pairs, in either order, 1 in 20 is held out for
    the test split and 1 in 20 for the validation split, by a hash.

    Args:
        n: int >= 0. N, number of pairs.
        num_digits: int in [1, 9]. Digits of the longest number. Default 3.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        `NumberComparisons`, with L = 2 `num_digits` + 3.

    Raises:
        ValueError: an argument is invalid, or no pair belongs to the split.

    Examples:
        >>> data = keras_attn.datasets.make_comparison_task(2)
        >>> data.numbers.tolist(), data.labels.tolist()
        ([[107, 433], [8, 6]], [0, 2])
        >>> data.tokens
        array([[ 1,  5,  4, 11,  2,  8,  7,  7,  2],
               [ 1, 12,  2, 10,  2,  0,  0,  0,  0]], dtype=int32)
    """
    # More would not fit int32.
    check_size("num_digits", num_digits, most=9)

    def draw(random, count):
        return (_numbers(random, count, num_digits),)

    def content(arrays):
        return np.sort(arrays[0], axis=1) + FIRST_ID

    length = 2 * num_digits + 3
    (numbers,) = draw_rows(n, seed, split, length, draw, content)
    tokens = np.full((n, length), PAD_ID, "int32")
    positions = np.full((n, 2), -1, "int32")
    for row, (first, second) in enumerate(numbers.tolist()):
        first, second = str(first), str(second)
        digits = [
            [int(digit) + FIRST_ID for digit in text]
            for text in (first, second)
        ]
        ids = [START_ID, *digits[0], END_ID, *digits[1], END_ID]
        tokens[row, : len(ids)] = ids
        if len(first) == len(second) and first != second:
            pairs = enumerate(zip(first, second, strict=True), start=1)
            index = next(i for i, (a, b) in pairs if a != b)
            positions[row] = index, index + len(first) + 1
    labels = 1 + np.sign(numbers[:, 0] - numbers[:, 1])
    return NumberComparisons(
        tokens, labels.astype("int32"), numbers.astype("int32"), positions
    )


def _numbers(random, count, num_digits):
    """Returns int64 (count, 2)."""
    digits = random.integers(num_digits + 1, (count, 2), start=1)
    same_size = random.uniform(count) < 0.5
    digits[same_size, 1] = digits[same_size, 0]
    # A number of several digits does not begin with 0.
    low = np.where(digits == 1, 0, 10 ** (digits - 1))
    numbers = _integers(random, low, 10**digits)
    shared = _integers(random, 0, digits[:, 0] + 1)
    tail = 10 ** (digits[:, 0] - shared)
    near = numbers[:, 0] // tail * tail + _integers(random, 0, tail)
    same_start = same_size & (shared > 0)
    numbers[same_start, 1] = near[same_start]
    return numbers


def _integers(random, low, high):
    """Returns integers in [low, high), for arrays of bounds."""
    size = high - low
    return low + (random.uniform(size.shape) * size).astype("int64")
