"""Questions about passages, in words, and where the answer stands."""

import re
from typing import Any, NamedTuple

# A number, a word of letters, or one other character that is no space.
_WORD = re.compile(r"\d+|[^\W\d_]+|[^\w\s]|_")


class Question(NamedTuple):
    """Holds a question, what it is about, and its answer.

    Args:
        asked: list of str, the words of the question.
        passage: list of str, the words in which the answer stands.
        span: tuple of int, the first and the last word of the answer, counted
            from 0 in the passage; None where the passage does not say.

    Examples:
    >>> Question(["who"], ["the", "cat", "slept"], (0, 1)).answer
    'the cat'
    """

    asked: Any
    passage: Any
    span: Any

    @property
    def answer(self):
        """Returns the answer as str, empty where there is none."""
        return words_of(self.passage, self.span)


def words_of(passage, span):
    """Returns the words of a span, joined by spaces; "" for None.

    Args:
        passage: list of str.
        span: tuple (first, last) of int, or None.

    Returns:
        Str.

    Examples:
    >>> words_of(["a", "red", "box"], (1, 2)), words_of(["a"], None)
    ('red box', '')
    """
    if span is None:
        return ""
    return " ".join(passage[span[0] : span[1] + 1])


def cut(text):
    """Cuts a text into words.

    Args:
        text: str.

    Returns:
        List of str: numbers, words of letters, and every other character that
        is no space.

    Examples:
    >>> cut("7:30pm, for Ann's")
    ['7', ':', '30', 'pm', ',', 'for', 'Ann', "'", 's']
    """
    return _WORD.findall(text)


def places(text):
    """Returns where the words of `cut` stand.

    Args:
        text: str.

    Returns:
        List of tuple (first, past the last), in characters.

    Examples:
    >>> places("at 7pm")
    [(0, 2), (3, 4), (4, 6)]
    """
    return [match.span() for match in _WORD.finditer(text)]
