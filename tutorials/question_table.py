"""Question and passage as one row of ids, and the answer as two places."""

import collections
import json

import numpy as np

PAD, UNKNOWN, SEPARATOR = 0, 1, 2
# Where a word stands: in the question, or in the passage, and then whether the
# question has it, too.
ASKED, READ, SHARED = SEGMENTS = range(3)
LONGEST_WORD = 20
_FIRST = 3  # the first id of a word; characters have no separator


class QuestionTable:
    """Numbers words and characters, and makes rows of them.

    A row is

        [words of the question] separator [words of the passage] padding

    A word is looked up in lower case; its characters keep theirs.

    Args:
        words: list of str, those that have an id of their own.
        characters: list of str; None: words come without their characters.
    """

    def __init__(self, words, characters=None):
        self.words, self.characters = words, characters
        self._ids = {word: i for i, word in enumerate(words, _FIRST)}
        self._character_ids = {c: i for i, c in enumerate(characters or (), 2)}
        self._spelt = {}

    @classmethod
    def of_questions(cls, questions, least=1, characters=False):
        """Makes the table of a training set.

        Args:
            questions: list of `Question`.
            least: int. How often a word must occur to have an id.
            characters: bool. Whether words come with their characters.
        """
        counts, found = collections.Counter(), set()
        for question in questions:
            for word in (*question.asked, *question.passage):
                counts[word.lower()] += 1
                found.update(word)
        return cls(
            sorted(word for word, count in counts.items() if count >= least),
            sorted(found) if characters else None,
        )

    @property
    def vocabulary_size(self):
        """Returns how many ids words have."""
        return len(self.words) + _FIRST

    @property
    def character_vocabulary_size(self):
        """Returns how many ids characters have; None where there are none."""
        return None if self.characters is None else len(self.characters) + 2

    def encode(self, questions, length=None):
        """Makes the inputs of a `SpanExtractor`.

        Args:
            questions: list of B `Question`.
            length: int. T, places in a row; default: the most that are needed.

        Returns:
            Dict of int32 `token_ids` (B, T); int32 `segment_ids` (B, T): 0 in
            the question and behind the end, 1 at words of the passage, 2 at
            those that the question has as well (after Chen et al. 2017,
            https://arxiv.org/abs/1704.00051, sec. 3.2); bool `answerable`
            (B, T), True at the words of the passage; and, where words come
            with their characters, int32 `character_ids` (B, T, 20).

        Raises:
            ValueError: a question that needs more places than a row has.
        """
        rows = [[*q.asked, None, *q.passage] for q in questions]
        longest = max(map(len, rows))
        length = longest if length is None else length
        if longest > length:
            raise ValueError(
                f"`length` must be at least {longest}, the longest row. "
                f"Received: length={length}"
            )
        tokens = np.full((len(rows), length), PAD, "int32")
        answerable = np.zeros(tokens.shape, "bool")
        for place, row in enumerate(rows):
            tokens[place, : len(row)] = [self._id(word) for word in row]
            begins = len(questions[place].asked) + 1
            answerable[place, begins : len(row)] = True
        inputs = {"token_ids": tokens, "answerable": answerable}
        inputs["segment_ids"] = _segments(questions, length)
        if self.characters is not None:
            inputs["character_ids"] = self._spell(rows, length)
        return inputs

    def labels(self, questions):
        """Returns int32 (B, 2): first and last place in the row, from 1.

        (0, 0) where there is no answer. Nothing in front of the passage can be
        one: the separator stands there.
        """
        labels = np.zeros((len(questions), 2), "int32")
        for row, question in zip(labels, questions, strict=True):
            if question.span is not None:
                # The separator is one place, and places count from 1.
                row[:] = np.array(question.span) + len(question.asked) + 2
        return labels

    def save(self, path):
        """Writes the table to a JSON file."""
        content = {"words": self.words, "characters": self.characters}
        path.write_text(json.dumps(content), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Reads a table that `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def _id(self, word):
        if word is None:
            return SEPARATOR
        return self._ids.get(word.lower(), UNKNOWN)

    def _spell(self, rows, length):
        ids = np.full((len(rows), length, LONGEST_WORD), PAD, "int32")
        for row, words in zip(ids, rows, strict=True):
            for place, word in zip(row, words, strict=False):
                if word is None:
                    continue  # the separator has no characters
                if word not in self._spelt:
                    self._spelt[word] = [
                        self._character_ids.get(c, UNKNOWN)
                        for c in word[:LONGEST_WORD]
                    ]
                place[: len(self._spelt[word])] = self._spelt[word]
        return ids


def _segments(questions, length):
    """Returns int32 (B, T); see `QuestionTable.encode`."""
    segments = np.full((len(questions), length), ASKED, "int32")
    for row, question in zip(segments, questions, strict=True):
        asked = {word.lower() for word in question.asked}
        begins = len(question.asked) + 1
        row[begins : begins + len(question.passage)] = [
            SHARED if word.lower() in asked else READ
            for word in question.passage
        ]
    return segments
