"""Words as ids, where a word without an id of its own can still be copied.

A small vocabulary has no name and no rare word. Here such words of a source
get numbers, "the first one", "the second one", and the target is written with
the same numbers (the copyable model of Luong et al. 2015,
https://arxiv.org/abs/1410.8206, sec. 3.1). To copy a word that was never seen
is then the same as to copy any other.
"""

import collections
import json

import numpy as np

PAD, START, END, UNKNOWN = range(4)
_FIRST = 4


class CopyTable:
    """Numbers frequent words, and has slots for all others.

    Args:
        words: list of str, those that have an id of their own.
        slots: int >= 0. Different words that can be copied in one source.
    """

    def __init__(self, words, slots):
        if slots < 0:
            raise ValueError(
                f"`slots` must not be negative. Received: slots={slots}"
            )
        self.words, self.slots = words, slots
        self._ids = {word: i for i, word in enumerate(words, _FIRST + slots)}

    @classmethod
    def of_pairs(cls, pairs, words, slots=40):
        """Makes the table of a training set.

        Args:
            pairs: list of (source, target), lists of str.
            words: int. How many words have an id: the most frequent ones.
            slots: int. Default 40.
        """
        counts = collections.Counter()
        for pair in pairs:
            for side in pair:
                counts.update(side)
        # Of equally frequent words the first in the alphabet.
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(sorted(ranked[:words]), slots)

    @property
    def vocabulary_size(self):
        """Returns how many ids there are."""
        return _FIRST + self.slots + len(self.words)

    def numbers(self, source, draw=None):
        """Gives each different word of a source without an id a slot.

        Args:
            source: list of str.
            draw: `numpy.random.Generator`, to take any slots, so that all of
                them are learnt alike; default None: the first ones, in order.

        Returns:
            Dict from word to id. Words for which no slot is left have none.
        """
        rare = dict.fromkeys(word for word in source if word not in self._ids)
        order = np.arange(self.slots) if draw is None else None
        order = draw.permutation(self.slots) if order is None else order
        return {
            word: _FIRST + int(slot)
            for word, slot in zip(rare, order, strict=False)
        }

    def encode(self, words, numbers):
        """Returns the ids of words, without start or end.

        Args:
            words: list of str.
            numbers: dict, the `numbers` of the source.
        """
        return [
            self._ids.get(word, numbers.get(word, UNKNOWN)) for word in words
        ]

    def decode(self, ids, numbers):
        """Returns the words of ids, up to the end; unknown ones are left out.

        Args:
            ids: list of int.
            numbers: dict, the `numbers` of the source.
        """
        spoken, words = {i: word for word, i in numbers.items()}, []
        for i in ids:
            if i == END:
                break
            if i >= _FIRST + self.slots:
                words.append(self.words[i - _FIRST - self.slots])
            elif i in spoken:
                words.append(spoken[i])
        return words

    def batch(self, pairs, length, draw=None):
        """Makes a batch for a `Transformer`.

        Args:
            pairs: list of B (source, target), lists of str.
            length: int. T, ids on each side.
            draw: `numpy.random.Generator`; see `numbers`.

        Returns:
            ((source, target), labels), int32 (B, T) each: the source with END,
            the target behind START, the labels with END.
        """
        source, target, labels = (
            np.full((len(pairs), length), PAD, "int32") for _ in range(3)
        )
        for row, (left, right) in enumerate(pairs):
            numbers = self.numbers(left, draw)
            left, right = (self.encode(side, numbers) for side in (left, right))
            source[row, : len(left) + 1] = [*left, END]
            target[row, : len(right) + 1] = [START, *right]
            labels[row, : len(right) + 1] = [*right, END]
        return (source, target), labels

    def save(self, path):
        """Writes the table to a JSON file."""
        content = {"words": self.words, "slots": self.slots}
        path.write_text(json.dumps(content), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Reads a table that `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))
