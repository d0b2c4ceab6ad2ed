"""The characters of a text as ids, without any that is special."""

import numpy as np


class CharacterTable:
    """Numbers the characters of a text.

    Args:
        characters: str, each once.
    """

    def __init__(self, characters):
        self.characters = characters
        self._ids = {c: i for i, c in enumerate(characters)}

    @classmethod
    def of_text(cls, text):
        """Makes the table of all characters of a text."""
        return cls("".join(sorted(set(text))))

    @property
    def size(self):
        """Returns how many ids there are."""
        return len(self.characters)

    def encode(self, text):
        """Returns the ids of a text.

        Args:
            text: str.

        Returns:
            Int32 (characters,).

        Raises:
            ValueError: a character that is not in the table.
        """
        unknown = sorted(set(text) - set(self.characters))
        if unknown:
            raise ValueError(
                "The text must have characters of the training text only. "
                f"Received: {unknown[0]!r}"
            )
        return np.array([self._ids[c] for c in text], "int32")

    def decode(self, ids):
        """Returns the text of ids."""
        return "".join(self.characters[int(i)] for i in ids)
