"""Pairs of sentences as rows of word ids, for models that translate words."""

import collections
import json
import re

import numpy as np

PAD, START, END, UNKNOWN = range(4)
_SPECIAL = ("<pad>", "<s>", "</s>", "<unknown>")
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class PairTable:
    """Numbers the words of two languages.

    In both, the ids 0 to 3 are padding, start, end and a word that is not
    known.

    Args:
        source_words: list of str.
        target_words: list of str.
    """

    def __init__(self, source_words, target_words):
        self.source_words, self.target_words = source_words, target_words
        self._source_ids, self._target_ids = (
            {word: i for i, word in enumerate(words, len(_SPECIAL))}
            for words in (source_words, target_words)
        )

    @classmethod
    def of_pairs(cls, pairs, most=10_000):
        """Makes the table of a training set.

        Args:
            pairs: list of tuple (source, target) of str.
            most: int. The most words of each language; the rarest are left
                out. Default 10,000.

        Returns:
            `PairTable`.
        """
        return cls(
            *(
                _frequent([pair[side] for pair in pairs], most)
                for side in (0, 1)
            )
        )

    @property
    def sizes(self):
        """Tuple of int: the ids of the source, and of the target."""
        return tuple(
            len(words) + len(_SPECIAL)
            for words in (self.source_words, self.target_words)
        )

    def sources(self, sentences, length, backwards=False):
        """Returns source sentences as rows of ids, each with an end.

        Args:
            sentences: list of str.
            length: int. S, places in a row, the end's among them.
            backwards: bool. Whether the last word stands first; the end stays
                where it is. Default False.

        Returns:
            Int32 (B, S), padding behind the end.

        Raises:
            ValueError: a sentence does not fit.
        """
        rows = [_ids(self._source_ids, sentence) for sentence in sentences]
        rows = [row[::-1] if backwards else row for row in rows]
        return _padded("length", [[*row, END] for row in rows], length)

    def targets(self, sentences, length):
        """Returns what a decoder reads, and what it shall say.

        Args:
            sentences: list of str.
            length: int. T, places in a row, the start's or end's among them.

        Returns:
            Two int32 (B, T): rows that begin with the start, and the same
            rows, one place on, that finish with the end.

        Raises:
            ValueError: a sentence does not fit.
        """
        rows = [_ids(self._target_ids, sentence) for sentence in sentences]
        return (
            _padded("length", [[START, *row] for row in rows], length),
            _padded("length", [[*row, END] for row in rows], length),
        )

    def target_text(self, ids):
        """Returns the words of target ids up to the end, as one str."""
        ids = [int(i) for i in ids]
        ids = ids[: ids.index(END)] if END in ids else ids
        names = [*_SPECIAL, *self.target_words]
        return " ".join(names[i] for i in ids if i not in (PAD, START))

    def save(self, path):
        """Writes the table to a JSON file."""
        content = {
            "source_words": self.source_words,
            "target_words": self.target_words,
        }
        text = json.dumps(content, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Reads a table that `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def words_of(sentence):
    """Splits a sentence into words and punctuation, in lower case.

    Args:
        sentence: str.

    Returns:
        List of str.

    Examples:
    >>> words_of("Don't go, Tom!")
    ["don't", 'go', ',', 'tom', '!']
    """
    return _WORD.findall(sentence.lower())


def _frequent(sentences, most):
    counts = collections.Counter()
    for sentence in sentences:
        counts.update(words_of(sentence))
    # By count and then by letter: the order of the pairs is of no account.
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return ordered[:most]


def _ids(table, sentence):
    return [table.get(word, UNKNOWN) for word in words_of(sentence)]


def _padded(name, rows, length):
    longest = max(map(len, rows), default=0)
    if longest > length:
        raise ValueError(
            f"`{name}` must be at least {longest}, the places that the longest "
            f"sentence needs. Received: {name}={length}"
        )
    found = np.full((len(rows), length), PAD, "int32")
    for ids, row in zip(found, rows, strict=True):
        ids[: len(row)] = row
    return found
