"""A task for hard and soft attention: look up the colour of a name.

Ana blue, Leo red, Eva green ...  Leo? -> red
"""

from typing import NamedTuple

import numpy as np

NAMES = tuple("Ana Leo Eva Tom Mia Max Zoe Jan Ida Ben Lia Kai".split())
COLOURS = tuple("red blue green black white brown pink grey".split())


class Lookup(NamedTuple):
    """Rows of the task.

    Args:
        names: int32 (B, S), the name in each slot, no two the same in a row.
        colours: int32 (B, S), the colour in each slot.
        asked: int32 (B,), one of the names of the row.
        slots: int32 (B,), where it is.
        answers: int32 (B,), its colour.
    """

    names: np.ndarray
    colours: np.ndarray
    asked: np.ndarray
    slots: np.ndarray
    answers: np.ndarray


def draw(count, slots, seed=0):
    """Draws rows; all names, colours and slots are equally likely.

    Args:
        count: int >= 0. B.
        slots: int. S, slots in a row, from 1 to the number of names.
        seed: int. The same seed draws the same. Default 0.

    Returns:
        `Lookup`.

    Raises:
        ValueError: `count` is negative, or there are not as many names.
    """
    if count < 0:
        raise ValueError(
            f"`count` must not be negative. Received: count={count}"
        )
    if not 1 <= slots <= len(NAMES):
        raise ValueError(
            f"`slots` must lie in [1, {len(NAMES)}], the number of names. "
            f"Received: slots={slots}"
        )
    generator = np.random.default_rng(seed)
    shuffled = generator.random((count, len(NAMES))).argsort(axis=1)
    names = shuffled[:, :slots].astype("int32")
    colours = generator.integers(
        len(COLOURS), size=(count, slots), dtype="int32"
    )
    chosen = generator.integers(slots, size=count, dtype="int32")
    rows = np.arange(count)
    return Lookup(
        names, colours, names[rows, chosen], chosen, colours[rows, chosen]
    )


def text(data, row):
    """Returns a row in words, as one str."""
    slots = ", ".join(
        f"{NAMES[name]} {COLOURS[colour]}"
        for name, colour in zip(data.names[row], data.colours[row], strict=True)
    )
    asked, answer = NAMES[data.asked[row]], COLOURS[data.answers[row]]
    return f"{slots}. {asked}? {answer}"
