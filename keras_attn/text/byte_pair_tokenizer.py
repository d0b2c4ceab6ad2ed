"""BytePairTokenizer: the tokenizer of GPT-2."""

import collections
import functools
import json
import pathlib
import re

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.text.byte_pairs import (
    byte_letters,
    joined,
    learn_merges,
    words,
)

_FILES = "vocab.json", "merges.txt"
_HEADER = "#version: 0.2"
_CACHED = 2**16  # words, of which a text repeats most


class BytePairTokenizer:
    r"""Joins bytes to pieces, as GPT-2 does: any text comes back.

    A text is cut into words by a fixed rule, a word into its UTF-8 bytes, and
    neighbours are joined in the order in which the pairs were learned (Sennrich
    et al. 2016, https://arxiv.org/abs/1508.07909; on bytes: Radford et al.
    2019, "Language Models are Unsupervised Multitask Learners", sec. 2.2).
    There is no unknown piece.

    A tokenizer is read from the two files of a published model (`load`) or
    learned (`train_from_lines`).

    Args:
        vocabulary: {piece: id}, ids from 0 without a gap.
        merges: list of pairs of str, in the order in which they are joined.
        end: str. The piece that stands for the end of a text, and that is
            found as such inside of texts. Default `"<|endoftext|>"`.

    Raises:
        ValueError: ids with gaps, no end, or a pair whose pieces are not there.

    Examples:
        >>> from keras_attn.text import BytePairTokenizer
        >>> lines = ["low lower lowest", "new newer newest"] * 4
        >>> tokenizer = BytePairTokenizer.train_from_lines(lines, 264)
        >>> tokenizer.tokens("the lowest")
        ['t', 'h', 'e', 'Ġlowe', 'st']
        >>> tokenizer.decode(tokenizer.encode("Where is\tthe 猫?"))
        'Where is\tthe 猫?'
    """

    pad_id = None

    def __init__(self, vocabulary, merges, end="<|endoftext|>"):
        vocabulary = dict(vocabulary)
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError(
                "`vocabulary` must have the ids from 0 on, without a gap. "
                f"Received: {len(vocabulary)} pieces with other ids"
            )
        merges = [tuple(pair) for pair in merges]
        for pair in merges:
            if len(pair) != 2 or "".join(pair) not in vocabulary:
                raise ValueError(
                    "`merges` must be pairs that join to a piece of the "
                    f"vocabulary. Received: {pair!r}"
                )
        needed = [end, *byte_letters()]
        missing = [piece for piece in needed if piece not in vocabulary]
        if missing:
            raise ValueError(
                "`vocabulary` must hold the end and a piece for each byte. "
                f"Received: none for {missing[0]!r}"
            )
        self._vocabulary = vocabulary
        self._pieces = sorted(vocabulary, key=vocabulary.get)
        self._merges = merges
        self._end = end
        self._bytes = {letter: b for b, letter in enumerate(byte_letters())}
        ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._joined = functools.lru_cache(_CACHED)(
            lambda word: joined(word, ranks)
        )

    @classmethod
    def load(cls, directory):
        """Reads `vocab.json` and `merges.txt`.

        Args:
            directory: path of a folder, as Hugging Face publishes it.

        Returns:
            A BytePairTokenizer.

        Raises:
            ValueError: a file that is missing or damaged.
        """
        folder = pathlib.Path(directory)
        for name in _FILES:
            if not (folder / name).is_file():
                raise ValueError(
                    f"`directory` must be a folder with {name} in it. "
                    f"Received: directory={str(directory)!r}"
                )
        try:
            vocabulary = json.loads(
                (folder / _FILES[0]).read_text(encoding="utf-8")
            )
            lines = (folder / _FILES[1]).read_text(encoding="utf-8")
        except ValueError as error:
            raise ValueError(
                f"`directory` must hold a JSON object in {_FILES[0]} and text "
                f"in {_FILES[1]}. Received: {error}"
            ) from error
        if not isinstance(vocabulary, dict):
            raise ValueError(
                f"{_FILES[0]} must be a JSON object. "
                f"Received: a {type(vocabulary).__name__}"
            )
        merges = [
            line.split(" ")
            for line in lines.split("\n")
            if line and not line.startswith("#version")
        ]
        return cls(vocabulary, merges)

    @classmethod
    def train_from_lines(cls, lines, vocabulary_size):
        """Learns a vocabulary from texts in memory.

        Equal texts give an equal vocabulary.

        Args:
            lines: iterable of str.
            vocabulary_size: int >= 257: a piece for each byte, the pieces that
                are learned, and the end. A small text runs out of pairs before.

        Returns:
            A BytePairTokenizer.

        Raises:
            ValueError: one text in place of several, or a size of less.
        """
        checks.positive_int("vocabulary_size", vocabulary_size)
        if isinstance(lines, (str, bytes)):
            raise ValueError(
                "`lines` must be an iterable of texts. "
                f"Received: one text {lines!r}"
            )
        if vocabulary_size < 257:
            raise ValueError(
                "`vocabulary_size` must be at least 257. "
                f"Received: vocabulary_size={vocabulary_size}"
            )
        counts = collections.Counter(w for line in lines for w in words(line))
        merges = learn_merges(counts, vocabulary_size - 257)
        pieces = [*byte_letters(), *map("".join, merges)]
        # Two pairs may join to the same piece.
        pieces = [*dict.fromkeys(pieces), "<|endoftext|>"]
        return cls({piece: i for i, piece in enumerate(pieces)}, merges)

    def save(self, directory):
        """Writes `vocab.json` and `merges.txt`, as `load` reads them.

        Args:
            directory: path of a folder; made if missing. A write that fails
                leaves the old files.

        Raises:
            OSError: the files cannot be written.
        """
        folder = writable_folder("directory", directory)
        lines = [_HEADER, *map(" ".join, self._merges)]
        with (
            whole_file(folder / _FILES[0]) as vocabulary,
            whole_file(folder / _FILES[1]) as merges,
        ):
            vocabulary.write_text(
                json.dumps(self._vocabulary, ensure_ascii=False),
                encoding="utf-8",
            )
            merges.write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def vocabulary_size(self):
        """How many ids there are."""
        return len(self._pieces)

    @property
    def end_id(self):
        """The id of the end of a text."""
        return self._vocabulary[self._end]

    start_id = end_id

    def encode(self, text):
        """Turns text into ids.

        Args:
            text: str, or list of str.

        Returns:
            List of int; of a list, a list of such lists.

        Raises:
            ValueError: something else than str.
        """
        if isinstance(text, (list, tuple)):
            return [self.encode(one) for one in text]
        return [self._vocabulary[piece] for piece in self.tokens(text)]

    def tokens(self, text):
        """Cuts a text into the pieces whose ids `encode` returns.

        Args:
            text: str.

        Returns:
            List of str, with a letter for each byte: `Ġ` is a space.

        Raises:
            ValueError: something else than str.
        """
        if not isinstance(text, str):
            raise ValueError(f"`text` must be str. Received: {text!r}")
        found = []
        for part in re.split(f"({re.escape(self._end)})", text):
            if part == self._end:
                found.append(part)
                continue
            for word in words(part):
                found += self._joined(word)
        return found

    def decode(self, ids):
        """Turns ids into text.

        Args:
            ids: list or array of int. Bytes that are no text, such as the first
                half of a letter, become U+FFFD.

        Returns:
            Str.

        Raises:
            ValueError: ids out of range.
        """
        out = []
        for number in map(int, ids):
            if not 0 <= number < len(self._pieces):
                raise ValueError(
                    f"`ids` must lie in [0, {len(self._pieces)}). "
                    f"Received: {number}"
                )
            piece = self._pieces[number]
            if piece == self._end:
                out.append(piece.encode())
            else:
                out.append(bytes(self._bytes[letter] for letter in piece))
        return b"".join(out).decode("utf-8", errors="replace")
