"""BytePairTokenizer: the tokenizer of GPT-2."""

import collections
import functools
import json
import re
from collections.abc import Mapping

from keras_attn import checks
from keras_attn.atomic_files import whole_file, writable_folder
from keras_attn.text import arguments
from keras_attn.text.byte_pairs import (
    byte_letters,
    joined,
    learn_merges,
    words,
)
from keras_attn.text.vocabulary_files import (
    read_json_object,
    read_text,
    vocabulary_folder,
)

_FILES = "vocab.json", "merges.txt"
_HEADER, _END = "#version: 0.2", "<|endoftext|>"
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
        ValueError: ids with gaps, a missing end token or byte, or a merge that
            is duplicated or whose result is not in the vocabulary.

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

    def __init__(self, vocabulary, merges, end=_END):
        checks.instance("vocabulary", vocabulary, Mapping, "a dict {piece: id}")
        vocabulary = dict(vocabulary)
        if not checks.string("end", end):
            raise ValueError("`end` must not be empty. Received: end=''")
        _check_vocabulary("`vocabulary`", vocabulary, end)
        merges = _checked_merges("`merges`", merges, vocabulary)
        self._vocabulary = vocabulary
        self._pieces = sorted(vocabulary, key=vocabulary.get)
        self._merges = merges
        self._end = end
        self._bytes = {letter: b for b, letter in enumerate(byte_letters())}
        ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._joined = functools.lru_cache(_CACHED)(
            lambda word: joined(word, ranks)
        )
        self._piece_bytes = functools.cache(self._to_bytes)

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
        folder = vocabulary_folder(directory, _FILES)
        paths = [folder / name for name in _FILES]
        vocabulary = read_json_object(paths[0])
        lines = read_text(paths[1]).replace("\r\n", "\n")
        merges = [
            line.split(" ")
            for line in lines.split("\n")
            if line and not line.startswith("#version")
        ]
        names = [f"{name} of `directory`" for name in _FILES]
        # The constructor would blame its own arguments.
        _check_vocabulary(names[0], vocabulary, _END)
        _checked_merges(names[1], merges, vocabulary)
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
            ValueError: `lines` is a single text or has an item that is not a
                str, or the size is below 257.
        """
        checks.positive_int("vocabulary_size", vocabulary_size)
        lines = arguments.text_lines("lines", lines)
        if vocabulary_size < 257:
            raise ValueError(
                "`vocabulary_size` must be at least 257. "
                f"Received: vocabulary_size={vocabulary_size}"
            )
        counts = collections.Counter(w for line in lines for w in words(line))
        merges = learn_merges(counts, vocabulary_size - 257)
        pieces = [*byte_letters(), *map("".join, merges)]
        # Two pairs may merge into the same piece.
        pieces = [*dict.fromkeys(pieces), _END]
        return cls({piece: i for i, piece in enumerate(pieces)}, merges)

    def save(self, directory):
        """Writes `vocab.json` and `merges.txt` for `load`.

        Args:
            directory: path of a folder; created if missing. A failed write
                leaves the old files.

        Raises:
            OSError: the files cannot be written.
            ValueError: `directory` is not a folder that can be written to.
        """
        checks.path("directory", directory)
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
            return [self._ids(one) for one in text]
        return self._ids(text)

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
            raise ValueError(
                "`text` must be a str or a list of str. "
                f"Received: an item of type {type(text).__name__}"
            )
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
            ValueError: no integers, or ids out of range.
        """
        ids = arguments.id_list("ids", ids, len(self._pieces))
        out = b"".join(map(self._piece_bytes, ids))
        return out.decode("utf-8", errors="replace")

    def _ids(self, text):
        return [self._vocabulary[piece] for piece in self.tokens(text)]

    def _to_bytes(self, number):
        piece = self._pieces[number]
        # Special tokens of published vocabularies may have other letters.
        if piece == self._end or not self._bytes.keys() >= {*piece}:
            return piece.encode("utf-8", errors="replace")
        return bytes(self._bytes[letter] for letter in piece)


def _check_vocabulary(name, vocabulary, end):
    """Raises ValueError unless these are pieces with contiguous ids."""
    ids = vocabulary.values()
    if not {*map(type, ids)} <= {int} or sorted(ids) != [*range(len(ids))]:
        raise ValueError(
            f"{name} must have contiguous ids from 0. "
            f"Received: {len(vocabulary)} pieces with other ids"
        )
    if not {*map(type, vocabulary)} <= {str}:
        raise ValueError(
            f"{name} must have pieces of type str. Received: another type"
        )
    missing = [p for p in (end, *byte_letters()) if p not in vocabulary]
    if missing:
        raise ValueError(
            f"{name} must contain the token `end` and a piece for each byte. "
            f"Received: a vocabulary without {missing[0]!r}"
        )


def _checked_merges(name, merges, vocabulary):
    """Returns merges as tuples, or raises ValueError."""
    merges = arguments.text_list("merges", merges, "a list of pairs of str")
    merges = [tuple(m) if isinstance(m, (list, tuple)) else m for m in merges]
    for pair in merges:
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or not all(isinstance(part, str) for part in pair)
            or "".join(pair) not in vocabulary
        ):
            raise ValueError(
                f"{name} must be pairs whose concatenation is in the "
                f"vocabulary. Received: {checks.shown(pair)}"
            )
    counted = collections.Counter(merges)
    if len(counted) < len(merges):
        raise ValueError(
            f"{name} must not have duplicates. "
            f"Received: {counted.most_common(1)[0][0]!r} several times"
        )
    return merges
