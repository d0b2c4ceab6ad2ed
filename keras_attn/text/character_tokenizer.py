"""CharacterTokenizer: one id per character."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Self

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.text import arguments
from keras_attn.text.vocabulary_files import (
    read_json_object,
    vocabulary_folder,
)
from keras_attn.typing import PathLike, TensorLike

_FILE = "characters.json"
_SPECIAL = "<pad>", "<s>", "</s>", "<unk>"
_REPLACEMENT = "\ufffd"  # for an unknown character


class CharacterTokenizer:
    """One id per character.

    Ids: 0 padding `<pad>`, 1 start `<s>`, 2 end `</s>`, 3 unknown `<unk>`, then
    the characters in the given order. `encode` adds no start or end id. A
    character is a Unicode code point; nothing is normalized, and

        decode(encode(text)) == text

    for every text of known characters.

    Collect the characters of your texts with `train_from_lines`, or load them
    with `load`.

    Args:
        characters: str, or iterable of str of length 1. Each may occur once.

    Raises:
        ValueError: a character occurs twice, an item is not one character, or
            there is none.

    Examples:
        >>> from keras_attn.text import CharacterTokenizer
        >>> tokenizer = CharacterTokenizer.train_from_lines(["to be", "or not"])
        >>> tokenizer.encode("boat")
        [5, 8, 3, 10]
        >>> tokenizer.decode([5, 8, 10, 2, 0])
        'bot'
    """

    pad_id: int
    start_id: int
    end_id: int
    unknown_id: int
    pad_id, start_id, end_id, unknown_id = range(len(_SPECIAL))

    def __init__(self, characters: str | Iterable[str]) -> None:
        self._pieces = [*_SPECIAL, *_characters("`characters`", characters)]
        first = len(_SPECIAL)
        self._texts = ["", "", "", _REPLACEMENT, *self._pieces[first:]]
        self._ids = {c: i for i, c in enumerate(self._pieces[first:], first)}

    @classmethod
    def train_from_lines(cls, lines: Iterable[str]) -> Self:
        """Collects the characters of texts in memory, in sorted order.

        Args:
            lines: iterable of str.

        Returns:
            A CharacterTokenizer.

        Raises:
            ValueError: `lines` is a single text, has no characters, or has an
                item that is not a str.
        """
        characters = set().union(*arguments.text_lines("lines", lines))
        if not characters:
            raise ValueError(
                "`lines` must have at least one character. Received: none"
            )
        return cls(sorted(characters))

    @classmethod
    def load(cls, directory: PathLike) -> Self:
        """Reads `characters.json`.

        Args:
            directory: path of a folder in which `save` wrote the file.

        Returns:
            A CharacterTokenizer.

        Raises:
            ValueError: the file is missing or corrupt.
        """
        folder = vocabulary_folder(directory, [_FILE])
        values = read_json_object(folder / _FILE)
        name = f"`characters` in {_FILE} of `directory`"
        # The constructor would blame its own argument.
        return cls(_characters(name, values.get("characters")))

    def save(self, directory: PathLike) -> None:
        """Writes `characters.json`, atomically.

        Args:
            directory: path of a folder; created if missing.

        Raises:
            OSError: the file cannot be written.
        """
        checks.path("directory", directory)
        folder = writable_folder("directory", directory)
        values = {"characters": "".join(self._pieces[len(_SPECIAL) :])}
        with whole_file(folder / _FILE) as partial:
            partial.write_text(json.dumps(values) + "\n", encoding="utf-8")

    @property
    def vocabulary_size(self) -> int:
        """Number of ids: they are in [0, vocabulary_size)."""
        return len(self._pieces)

    def encode(self, texts: str | Sequence[str]) -> list[Any]:
        """Encodes texts as ids, without start and end.

        Args:
            texts: str, or list of str.

        Returns:
            list of int; for a list, a list of such lists.

        Raises:
            ValueError: a text is not a str.
        """
        if isinstance(texts, str):
            return [self._ids.get(c, self.unknown_id) for c in texts]
        texts = arguments.text_list("texts", texts)
        expected = "a str or a list of str"
        for text in texts:
            checks.instance("texts", text, str, expected)
        return [self.encode(text) for text in texts]

    def pieces(self, ids: TensorLike) -> list[str]:
        """Returns the character of each id, special ids included.

        Args:
            ids: int (L,): list, NumPy array or tensor.

        Returns:
            list of L str; `<pad>`, `<s>`, `</s>` and `<unk>` for the special
            ids.

        Raises:
            ValueError: no integers, or an id outside [0, vocabulary_size).
        """
        ids = arguments.id_list("ids", ids, self.vocabulary_size)
        return [self._pieces[i] for i in ids]

    def decode(self, ids: TensorLike) -> Any:
        """Decodes ids to text, up to the end id, without padding and start.

        An unknown id becomes the replacement character U+FFFD.

        Args:
            ids: int (L,), (B, L) or of higher rank, such as the tokens that
                `generate` returns: list, NumPy array or tensor. Rows of a list
                may differ in length.

        Returns:
            str for rank 1, else (nested) list of str.

        Raises:
            ValueError: no integers, or an id outside [0, vocabulary_size).
        """
        size = self.vocabulary_size
        return arguments.decode_rows(
            "ids", ids, size, self.end_id, self._decode
        )

    def token_bytes(self) -> list[bytes]:
        """Returns the bytes that each id adds to a text, in UTF-8.

        Those of padding, start and end are empty.
        """
        return [text.encode() for text in self._texts]

    def _decode(self, ids):
        return "".join(self._texts[i] for i in ids)


def _characters(name, characters):
    """Returns a list of different characters, or raises ValueError."""
    expected = f"{name} must be a str, or a list of different characters."
    if not isinstance(characters, str) and not arguments.is_iterable(
        characters
    ):
        raise ValueError(f"{expected} Received: {checks.shown(characters)}")
    characters = list(checks.sized("characters", characters))
    for character in characters:
        if not isinstance(character, str) or len(character) != 1:
            raise ValueError(f"{expected} Received: {checks.shown(character)}")
    repeated = len(characters) - len({*characters})
    if repeated or not characters:
        raise ValueError(
            f"{expected} Received: {len(characters)} characters, "
            f"{repeated} of them repeated"
        )
    return characters
