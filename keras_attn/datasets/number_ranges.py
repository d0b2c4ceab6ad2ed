"""Arguments that are a number, or a range of numbers to draw from."""

from typing import Any

import numpy as np

from keras_attn import checks


def number_range(
    name: str, value: float | tuple[float, float], least: float, most: float
) -> tuple[Any, ...]:
    """Returns the range of an argument, or raises ValueError.

    Args:
        name: str. Name of the argument, for the error message.
        value: float, or a pair of them.
        least: float. Lower bound of the numbers.
        most: float. Upper bound of the numbers.

    Returns:
        Tuple (low, high) of float, the same twice for a number.

    Examples:
        >>> from keras_attn.datasets.number_ranges import number_range
        >>> number_range("wpm", 20, 1, 100), number_range("wpm", (5, 9), 1, 100)
        ((20.0, 20.0), (5.0, 9.0))
    """
    pair = value if isinstance(value, (list, tuple)) else (value, value)
    if (
        len(pair) != 2
        or any(isinstance(item, (bool, np.bool_)) for item in pair)
        or not all(
            isinstance(item, (int, float, np.integer, np.floating))
            for item in pair
        )
        or not least <= pair[0] <= pair[1] <= most
    ):
        raise ValueError(
            f"`{name}` must be a number in [{least:g}, {most:g}], or a pair "
            f"(low, high) of them. Received: {name}={checks.shown(value)}"
        )
    return float(pair[0]), float(pair[1])
