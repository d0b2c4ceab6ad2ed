"""A text to learn to write: passages of the phrase grammar, line by line."""

import random

from phrase_passages import passage, write


def passage_text(count, seed):
    """Writes passages as people would, with capitals and full stops.

    Args:
        count: int. How many.
        seed: int. The same seed gives the same text.

    Returns:
        Str, a passage a line.

    Examples:
    >>> passage_text(1, 1)[:42]
    'The young teacher read the difficult book.'
    """
    draw = random.Random(seed)
    return "".join(_line(write(passage(draw))[0]) + "\n" for _ in range(count))


def _line(words):
    sentences = " ".join(words).removesuffix(" .").split(" . ")
    return " ".join(s[0].upper() + s[1:] + "." for s in sentences)
