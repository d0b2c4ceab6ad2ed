"""Sentences of different lengths in the rows of one rectangle."""

from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """A batch of sentences.

    Args:
        ids: int32 (B, T), 0 where there is no token.
        segments: int32 (B, T), from 1, which sentence of its row a token
            belongs to; 0 where there is no token.
        places: list of (row, slice), where each sentence lies.
    """

    ids: np.ndarray
    segments: np.ndarray
    places: list

    @property
    def there(self):
        """Bool (B, T), True where there is a token."""
        return self.segments > 0


def padded(sentences, length, side="right"):
    """Lays out one sentence in each row.

    Args:
        sentences: list of lists of int > 0.
        length: int. T, at least as many as the longest has tokens.
        side: `"right"` or `"left"`: where the padding goes.

    Returns:
        `Rows`.

    Raises:
        ValueError: a sentence that is too long.
    """
    places = []
    for row, sentence in enumerate(sentences):
        start = 0 if side == "right" else length - len(sentence)
        places.append((row, slice(start, start + len(sentence))))
    return _filled(sentences, places, len(sentences), length)


def packed(sentences, length):
    """Lays out as many sentences in a row as there is room for, in order.

    Args:
        sentences: list of lists of int > 0.
        length: int. T, at least as many as the longest has tokens.

    Returns:
        `Rows`.

    Raises:
        ValueError: a sentence that is too long.
    """
    places, row, start = [], 0, 0
    for sentence in sentences:
        if start + len(sentence) > length:
            row, start = row + 1, 0
        places.append((row, slice(start, start + len(sentence))))
        start += len(sentence)
    return _filled(sentences, places, row + 1, length)


def _filled(sentences, places, count, length):
    longest = max(map(len, sentences))
    if longest > length:
        raise ValueError(
            f"`length` must be at least {longest}, the longest sentence. "
            f"Received: length={length}"
        )
    ids = np.zeros((count, length), "int32")
    segments = np.zeros((count, length), "int32")
    for sentence, (row, slots) in zip(sentences, places, strict=True):
        ids[row, slots] = sentence
        segments[row, slots] = segments[row].max() + 1
    return Rows(ids, segments, places)
