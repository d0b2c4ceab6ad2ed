"""Characters as ids, for a model that reads and writes letter by letter."""

import json

import numpy as np

PAD, START, END, UNKNOWN = range(4)


class Letters:
    """Numbers the characters of a training set.

    Ids begin with those of padding (0), of what stands in front of a word (1),
    behind it (2), and of a character that was never seen (3).

    Args:
        characters: str, each once.
    """

    def __init__(self, characters):
        self.characters = characters
        self._ids = {c: i for i, c in enumerate(characters, UNKNOWN + 1)}

    @classmethod
    def of_words(cls, words):
        """Makes the table of all characters of some words."""
        return cls("".join(sorted(set("".join(words)))))

    @property
    def size(self):
        """Returns how many ids there are."""
        return len(self.characters) + UNKNOWN + 1

    def encode(self, word):
        """Returns the ids of a word's characters and of the end behind it.

        Args:
            word: str.

        Returns:
            List of int.
        """
        return [*(self._ids.get(c, UNKNOWN) for c in word), END]

    def rows(self, words, length):
        """Returns words as one array.

        Args:
            words: list of str, none of which needs more than `length` ids.
            length: int. Ids in a row.

        Returns:
            Int32 (words, length), padding behind the ends.

        Raises:
            ValueError: a word that is too long.
        """
        found = np.full((len(words), length), PAD, "int32")
        for row, word in zip(found, words, strict=True):
            ids = self.encode(word)
            if len(ids) > length:
                raise ValueError(
                    f"`words` must have less than {length} characters. "
                    f"Received: {word!r}"
                )
            row[: len(ids)] = ids
        return found

    def decode(self, ids):
        """Returns the word of a row of ids, up to its end.

        Args:
            ids: ints (length,).

        Returns:
            Str. What is no character of the table is left out.
        """
        word = []
        for i in map(int, ids):
            if i == END:
                break
            if i > UNKNOWN:
                word.append(self.characters[i - UNKNOWN - 1])
        return "".join(word)

    def save(self, path):
        """Writes the table to a JSON file."""
        path.write_text(json.dumps(self.characters), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Reads a table that `save` wrote."""
        return cls(json.loads(path.read_text(encoding="utf-8")))
