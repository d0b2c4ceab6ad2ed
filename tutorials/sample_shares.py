"""What can be counted of sampled texts."""

import re

_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def words_of(text):
    """Returns the words of a text, in lower case."""
    return _WORDS.findall(text.lower())


def real_words(samples, known):
    """Returns the share of words that are known.

    Args:
        samples: list of str. Their first and last words may be cut off: they
            are left out.
        known: set of str.

    Returns:
        Float.

    Examples:
    >>> real_words(["he cat zat on a th"], {"cat", "on", "a"})
    0.75
    """
    words = [word for text in samples for word in words_of(text)[1:-1]]
    return sum(word in known for word in words) / max(1, len(words))


def variety(samples, length=3):
    """Returns how many of all stretches of words are different.

    Args:
        samples: list of str.
        length: int. Words of a stretch.

    Returns:
        Float.

    Examples:
    >>> variety(["a b c d", "a b c e"])
    0.75
    """
    found = []
    for text in samples:
        words = words_of(text)
        found += zip(*(words[i:] for i in range(length)), strict=False)
    return len(set(found)) / max(1, len(found))


def copied(samples, text, length):
    """Returns the share of stretches of the samples that stand in a text.

    Args:
        samples: list of str.
        text: str, the text that was learned from.
        length: int. Characters of a stretch.

    Returns:
        Float.

    Examples:
    >>> copied(["abcd", "abxx"], "zabcz", 3)
    0.25
    """
    found = [
        sample[start : start + length] in text
        for sample in samples
        for start in range(len(sample) - length + 1)
    ]
    return sum(found) / max(1, len(found))
