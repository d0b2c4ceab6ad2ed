"""WordPieceTokenizer: the tokenizer of BERT."""

import collections
import re

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.learned_word_pieces import learn_word_pieces
from keras_attn.text.packed_segments import packed
from keras_attn.text.word_cleaning import cleaned_words
from keras_attn.text.word_piece_files import (
    VOCABULARY,
    read_word_pieces,
    write_word_pieces,
)
from keras_attn.text.word_pieces import JOINER, cut_word

_SPECIAL = {
    "pad": "[PAD]",
    "unknown": "[UNK]",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "mask": "[MASK]",
}
# The text between two spaces is cached if it is short, as most of it recurs;
# long strings rarely do, and would fill the memory.
_CACHED, _SHORT = 2**17, 32


class WordPieceTokenizer:
    """WordPiece tokenizer, as in BERT: *un*, *##like*, *##ly*.

    A text is cleaned and split into words and punctuation, and each word into
    pieces: repeatedly the longest prefix that is in the vocabulary; pieces that
    continue a word start with `##`. A word that cannot be split, or is too
    long, becomes the unknown token (Devlin et al. 2019,
    https://arxiv.org/abs/1810.04805; pieces: Wu et al. 2016, sec. 4.1,
    https://arxiv.org/abs/1609.08144). Special tokens such as `[MASK]` are
    recognized inside texts.

    Load the files of a published model with `load`, or learn a vocabulary with
    `train_from_lines`. Only learning needs tensorflow-text: its tokenizer gives
    the same ids, is not faster, and would load TensorFlow.

    Args:
        vocabulary: iterable of str, the pieces in the order of their ids.
        lowercase: bool. Whether to lowercase the text. Default True.
        strip_accents: bool. Whether to strip accents. Default None: same as
            `lowercase`.
        split_chinese: bool. Whether each Chinese character is a word. Default
            True.
        pad: str. The padding token. Default `"[PAD]"`.
        unknown: str. The unknown token. Default `"[UNK]"`.
        cls: str. The first token of a row. Default `"[CLS]"`.
        sep: str. The token after each segment. Default `"[SEP]"`.
        mask: str. The mask token. Default `"[MASK]"`.
        max_word_length: int. Longer words become the unknown token. Default
            100, as in BERT and the only value that `transformers` supports.

    Raises:
        ValueError: a piece that is duplicated or not a str, a special token
            that is missing, or a length that is not a positive int.

    Examples:
        >>> from keras_attn.text import WordPieceTokenizer
        >>> tokenizer = WordPieceTokenizer(
        ...     "[PAD] [UNK] [CLS] [SEP] [MASK] un ##like ##ly you".split())
        >>> tokenizer.tokens("Unlikely you")
        ['un', '##like', '##ly', 'you']
        >>> packed = tokenizer.pack(["unlikely"], ["you"])
        >>> packed["token_ids"].tolist(), packed["segment_ids"].tolist()
        ([[2, 5, 6, 7, 3, 8, 3]], [[0, 0, 0, 0, 0, 1, 1]])
    """

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        split_chinese=True,
        pad="[PAD]",
        unknown="[UNK]",
        cls="[CLS]",
        sep="[SEP]",
        mask="[MASK]",
        max_word_length=100,
    ):
        checks.positive_int("max_word_length", max_word_length, most=None)
        checks.boolean("lowercase", lowercase)
        checks.boolean("split_chinese", split_chinese)
        if strip_accents is not None:
            checks.boolean("strip_accents", strip_accents)
        pieces = arguments.text_list(
            "vocabulary", vocabulary, "an iterable of pieces, of str"
        )
        values = pad, unknown, cls, sep, mask
        special = dict(zip(_SPECIAL, values, strict=True))
        for name, piece in special.items():
            if not checks.string(name, piece):
                raise ValueError(
                    f"`{name}` must not be empty. Received: {name}=''"
                )
        _check_pieces("`vocabulary`", pieces, special)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_chinese = split_chinese
        self.max_word_length = max_word_length
        self._pieces = pieces
        self._ids = {piece: i for i, piece in enumerate(pieces)}
        self._special = special
        names = sorted(map(re.escape, special.values()), key=len, reverse=True)
        self._special_pattern = re.compile(f"({'|'.join(names)})")
        self._longest = max(map(len, pieces))
        self._known = {}

    @classmethod
    def load(cls, directory):
        """Reads `vocab.txt` and, if present, `tokenizer_config.json`.

        Args:
            directory: path of a folder in Hugging Face's layout.

        Returns:
            A WordPieceTokenizer.

        Raises:
            ValueError: a file or special token is missing, or a file is
                corrupt.
        """
        pieces, options = read_word_pieces(directory)
        special = {name: options.get(name, _SPECIAL[name]) for name in _SPECIAL}
        # The constructor would blame its own arguments.
        _check_pieces(f"{VOCABULARY} of `directory`", pieces, special)
        return cls(pieces, **options)

    @classmethod
    def train_from_lines(cls, lines, vocabulary_size, **kwargs):
        """Learns a vocabulary from texts in memory.

        The result is deterministic. tensorflow-text chooses the pieces.

        Args:
            lines: iterable of str.
            vocabulary_size: int. Maximum number of pieces.
            **kwargs: other arguments of the constructor.

        Returns:
            A WordPieceTokenizer.

        Raises:
            ValueError: `lines` is a single text, has no words or an item that
                is not a str, or the size is too small for the characters.
            ImportError: tensorflow-text is not installed.

        Examples:
            >>> tokenizer = keras_attn.text.WordPieceTokenizer
            >>> lines = ["low lower lowest", "new newer newest"] * 4
            >>> tokenizer.train_from_lines(lines, 40).tokens("newer lows")
            ['newer', 'low', '##s']
        """
        checks.positive_int("vocabulary_size", vocabulary_size)
        lines = arguments.text_lines("lines", lines)
        special = {**_SPECIAL, **kwargs}
        special = [special[name] for name in _SPECIAL]
        bare = cls(special, **kwargs)
        counts = collections.Counter(
            word
            for line in lines
            for part in bare._parts(line)[::2]
            for word in bare._cleaned(part)
        )
        pieces = learn_word_pieces(counts, vocabulary_size, special)
        return cls(pieces, **kwargs)

    def save(self, directory):
        """Writes `vocab.txt` and `tokenizer_config.json`.

        `load` reads them, and so does `transformers`.

        Args:
            directory: path of a folder; created if missing. A failed write
                leaves the old files.

        Raises:
            OSError: the files cannot be written.
            ValueError: `directory` is not a folder that can be written to.
        """
        options = {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
            "max_word_length": self.max_word_length,
            **self._special,
        }
        write_word_pieces(directory, self._pieces, options)

    @property
    def vocabulary(self):
        """The pieces in the order of their ids, a tuple of str."""
        return tuple(self._pieces)

    @property
    def vocabulary_size(self):
        """Number of ids."""
        return len(self._pieces)

    @property
    def pad_id(self):
        """The id of the padding token."""
        return self._ids[self._special["pad"]]

    @property
    def unknown_id(self):
        """The id of the unknown token."""
        return self._ids[self._special["unknown"]]

    @property
    def start_id(self):
        """The id of `[CLS]`."""
        return self._ids[self._special["cls"]]

    @property
    def end_id(self):
        """The id of `[SEP]`."""
        return self._ids[self._special["sep"]]

    @property
    def mask_id(self):
        """The id of `[MASK]`."""
        return self._ids[self._special["mask"]]

    @property
    def special_ids(self):
        """The ids of the special tokens, a tuple; they are never masked."""
        return tuple(sorted(self._ids[p] for p in self._special.values()))

    @property
    def continuations(self):
        """Bool (V,), True for pieces that continue a word."""
        return np.array([p.startswith(JOINER) for p in self._pieces])

    def encode(self, text):
        """Encodes text as ids, without `[CLS]` and `[SEP]`.

        Args:
            text: str, or list of str.

        Returns:
            List of int; for a list, a list of such lists.

        Raises:
            ValueError: an input that is not a str.
        """
        if isinstance(text, (list, tuple)):
            return [self._encode(one) for one in text]
        return self._encode(text)

    def _encode(self, text):
        ids = []
        for number, part in enumerate(self._parts(text)):
            if number % 2:
                ids.append(self._ids[part])
                continue
            for between in part.split(" "):
                ids += self._between(between)
        return ids

    def tokens(self, text):
        """Splits a text into the pieces whose ids `encode` returns.

        Args:
            text: str.

        Returns:
            List of str.

        Raises:
            ValueError: an input that is not a str.
        """
        return [self._pieces[i] for i in self._encode(text)]

    def decode(self, ids):
        """Decodes ids to text, with a space between words.

        Args:
            ids: list or array of int. Special tokens other than the unknown
                token are left out.

        Returns:
            str. The cleaning is not reversible.

        Raises:
            ValueError: no integers, or ids out of range.
        """
        left_out = set(self.special_ids) - {self.unknown_id}
        words = []
        for number in arguments.id_list("ids", ids, len(self._pieces)):
            piece = self._pieces[number]
            if number in left_out:
                continue
            if piece.startswith(JOINER) and words:
                words[-1] += piece.removeprefix(JOINER)
            else:
                words.append(piece)
        return " ".join(words)

    def pack(self, first, second=None, length=None, pad_to_length=False):
        """Makes inputs of `Bert` from sentences or sentence pairs.

            [CLS] first [SEP]    or    [CLS] first [SEP] second [SEP]

        Args:
            first: list of B str, or of B lists of ids.
            second: list of B of the same. Default None: single sentences.
            length: int. Maximum ids per row, special ids included. Longer rows
                are truncated, the longer sentence first, at its end. Default
                None: no truncation.
            pad_to_length: bool. Whether to pad all rows to `length`. Default
                False: to the longest row.

        Returns:
            Dict of int32 (B, T): `"token_ids"`, padded on the right, and
            `"segment_ids"`, 0 up to the first `[SEP]`, 1 after it; 0 at
            padding.

        Raises:
            ValueError: `first` and `second` differ in length, or `length` is
                too short for the special ids and one id per sentence.
        """
        sides = [self._rows("first", first)]
        if second is not None:
            sides.append(self._rows("second", second))
            if len(sides[1]) != len(sides[0]):
                raise ValueError(
                    f"`second` must have as many rows as `first`, "
                    f"{len(sides[0])}. Received: {len(sides[1])}"
                )
        return packed(
            sides,
            self.start_id,
            self.end_id,
            self.pad_id,
            length,
            pad_to_length,
        )

    def _rows(self, name, rows):
        if isinstance(rows, str) or not isinstance(rows, (list, tuple)):
            raise ValueError(
                f"`{name}` must be a list of texts, or of lists of ids. "
                f"Received: {name} of type {type(rows).__name__}"
            )
        kinds = {isinstance(row, str) for row in rows}
        if len(kinds) == 2:
            raise ValueError(
                f"`{name}` must be a list of texts, or of lists of ids. "
                "Received: a mixture of both"
            )
        if True in kinds:
            return self.encode(rows)
        size = len(self._pieces)
        return [arguments.id_list(name, row, size) for row in rows]

    def _parts(self, text):
        """Splits a text at special tokens, which get the odd indices."""
        if not isinstance(text, str):
            raise ValueError(
                "`text` must be a str or a list of str. "
                f"Received: an item of type {type(text).__name__}"
            )
        return self._special_pattern.split(text)

    def _cleaned(self, text):
        """Returns the words of a text without special tokens."""
        accents = self.strip_accents
        if accents is None:
            accents = self.lowercase
        return cleaned_words(text, self.lowercase, accents, self.split_chinese)

    def _between(self, text):
        """Returns the ids of the text between two spaces."""
        ids = self._known.get(text)
        if ids is None:
            ids = [
                i for word in self._cleaned(text) for i in self._word_ids(word)
            ]
            if len(text) <= _SHORT:
                if len(self._known) >= _CACHED:
                    self._known.clear()
                self._known[text] = ids
        return ids

    def _word_ids(self, word):
        if len(word) > self.max_word_length:
            return [self.unknown_id]
        return cut_word(word, self._ids, self.unknown_id, self._longest)


def _check_pieces(name, pieces, special):
    """Raises ValueError unless pieces are unique str with the special ones."""
    for piece in pieces:
        if not isinstance(piece, str):
            raise ValueError(
                f"{name} must be pieces of str. Received: {checks.shown(piece)}"
            )
        if "\n" in piece or "\r" in piece:
            raise ValueError(
                f"{name} must have pieces without line breaks. "
                f"Received: {checks.shown(piece)}"
            )
    counted = collections.Counter(pieces)
    if len(counted) < len(pieces):
        raise ValueError(
            f"{name} must not have duplicates. "
            f"Received: {counted.most_common(1)[0][0]!r} several times"
        )
    for argument, piece in special.items():
        if piece not in counted:
            raise ValueError(
                f"{name} must contain the token `{argument}`. "
                f"Received: no {checks.shown(piece)} among {len(pieces)}"
            )
