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
_CACHED = 2**16  # words; most words of a text recur


class BytePairTokenizer:
    r"""Byte-level byte-pair encoding (BPE), as in GPT-2.

    A text is split into words by a regular expression and each word into its
    UTF-8 bytes; adjacent pieces are merged in the order in which the pairs were
    learned (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909; on bytes:
    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners",
    sec. 2.2). Any text round-trips, and there is no unknown token.

    Load the two files of a published model with `load`, or learn a vocabulary
    with `train_from_lines`.

    Args:
        vocabulary: {piece: id}, with contiguous ids from 0.
        merges: list of pairs of str, in merge order.
        end: str. The end-of-text token, also recognized inside texts. Default
            `"<|endoftext|>"`.

    Raises:
        ValueError: ids with gaps, a missing end token or byte, or a merge whose
            result is not in the vocabulary.

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
                "`vocabulary` must have contiguous ids from 0. "
                f"Received: {len(vocabulary)} pieces with other ids"
            )
        merges = [tuple(pair) for pair in merges]
        for pair in merges:
            if len(pair) != 2 or "".join(pair) not in vocabulary:
                raise ValueError(
                    "`merges` must be pairs whose concatenation is in the "
                    f"vocabulary. Received: {pair!r}"
                )
        needed = [end, *byte_letters()]
        missing = [piece for piece in needed if piece not in vocabulary]
        if missing:
            raise ValueError(
                "`vocabulary` must contain the end token and a piece for each "
                f"byte. Received: a vocabulary without {missing[0]!r}"
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
            directory: path of a folder in Hugging Face's layout.

        Returns:
            A BytePairTokenizer.

        Raises:
            ValueError: a file is missing or corrupt.
        """
        folder = pathlib.Path(directory)
        for name in _FILES:
            if not (folder / name).is_file():
                raise ValueError(
                    f"`directory` must be a folder that contains {name}. "
                    f"Received: directory={str(directory)!r}"
                )
        try:
            vocabulary = json.loads(
                (folder / _FILES[0]).read_text(encoding="utf-8")
            )
            lines = (folder / _FILES[1]).read_text(encoding="utf-8")
        except ValueError as error:
            raise ValueError(
                f"`directory` must contain a JSON object in {_FILES[0]} and "
                f"text in {_FILES[1]}. Received: {error}"
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

        The result is deterministic.

        Args:
            lines: iterable of str.
            vocabulary_size: int >= 257: 256 bytes, the learned pieces and the
                end token. With little text the result may be smaller.

        Returns:
            A BytePairTokenizer.

        Raises:
            ValueError: `lines` is a single text, or the size is below 257.
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
        # Two pairs may merge into the same piece.
        pieces = [*dict.fromkeys(pieces), "<|endoftext|>"]
        return cls({piece: i for i, piece in enumerate(pieces)}, merges)

    def save(self, directory):
        """Writes `vocab.json` and `merges.txt` for `load`.

        Args:
            directory: path of a folder; created if missing. A failed write
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
        """Number of ids."""
        return len(self._pieces)

    @property
    def end_id(self):
        """Id of the end-of-text token."""
        return self._vocabulary[self._end]

    start_id = end_id

    def encode(self, text):
        """Encodes text as ids.

        Args:
            text: str, or list of str.

        Returns:
            List of int; for a list, a list of such lists.

        Raises:
            ValueError: an input that is not a str.
        """
        if isinstance(text, (list, tuple)):
            return [self.encode(one) for one in text]
        return [self._vocabulary[piece] for piece in self.tokens(text)]

    def tokens(self, text):
        """Splits a text into the pieces whose ids `encode` returns.

        Args:
            text: str.

        Returns:
            List of str, with one character per byte: `Ġ` is a space.

        Raises:
            ValueError: an input that is not a str.
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
        """Decodes ids to text.

        Args:
            ids: list or array of int. Invalid UTF-8, such as the first half of
                a character, becomes U+FFFD.

        Returns:
            str.

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
