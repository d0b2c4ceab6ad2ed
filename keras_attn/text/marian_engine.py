"""MarianEngine: sentencepiece pieces with the ids of a vocab.json."""

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_attn.text import arguments, packages
from keras_attn.text.tokenizer_folder import str_of

_SPACE = "\u2581"


class MarianText(NamedTuple):
    """The pieces of a text.

    Args:
        ids: list of int.
        offsets: list of pairs of int, in characters.
        words: list of int, the index of each piece's word.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    words: list[int | None]


class MarianEngine:
    """The methods of `tokenizers.Tokenizer` that a tokenizer calls.

    Marian's models split a text with the sentencepiece model of its language,
    whose ids are not those of the vocabulary, which is common to both
    languages (as in `transformers.MarianTokenizer`).

    Args:
        processor: `sentencepiece.SentencePieceProcessor` that splits texts.
        joiner: the same, that joins pieces to a text.
        vocab: dict {token: id}.
        unk_token: str.
    """

    def __init__(
        self,
        processor: Callable[..., Any],
        joiner: str,
        vocab: dict[str, int],
        unk_token: str,
    ) -> None:
        self._processor, self._joiner = processor, joiner
        self._vocab = vocab
        self._unknown = vocab[unk_token]
        self._added, self._tokens = {}, {i: t for t, i in vocab.items()}
        self._pattern = None
        pieces = map(processor.id_to_piece, range(processor.get_piece_size()))
        self._table = [vocab.get(p, self._unknown) for p in pieces]

    def with_processor(self, processor: Callable[..., Any]) -> Any:
        """Returns an engine for the other language."""
        unknown = self._tokens[self._unknown]
        other = MarianEngine(processor, self._joiner, self._vocab, unknown)
        other.add_tokens([*self._added.values()])
        return other

    def add_tokens(self, tokens: Any) -> None:
        """Adds AddedTokens, with new ids for those that are not known."""
        for token in tokens:
            if token.single_word or token.lstrip or token.rstrip:
                raise ValueError(
                    "The added tokens of a MarianTokenizer must have no "
                    "`single_word`, `lstrip` or `rstrip`. "
                    f"Received: {token.content!r}"
                )
            known = self.get_vocab()
            number = known.get(token.content, len(known))
            self._added.setdefault(number, token)
            self._tokens[number] = token.content
        names = sorted(map(str_of, self._added.values()), key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, names))})")

    def get_added_tokens_decoder(self) -> dict[str, Any]:
        """Returns {id: AddedToken}."""
        return dict(self._added)

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Returns {token: id}."""
        added = {t.content: i for i, t in self._added.items()}
        return {**self._vocab, **(added if with_added_tokens else {})}

    def token_to_id(self, token: Any) -> Any:
        """Returns an id, or None."""
        return self.get_vocab().get(token)

    def encode_batch_fast(
        self,
        texts: Any,
        add_special_tokens: bool = False,
        is_pretokenized: bool = False,
    ) -> list[Any]:
        """Returns a MarianText for each text, with ids alone."""
        self._check(texts)
        # Searches in all texts at once are faster than one in each.
        joined = "\n".join(texts)
        names = (token.content for token in self._added.values())
        if ">>" in joined or any(name in joined for name in names):
            plain = [
                i
                for i, text in enumerate(texts)
                if not (text.startswith(">>") or self._pattern.search(text))
            ]
        else:
            plain = range(len(texts))
        found = [None] * len(texts)
        given = texts
        if len(plain) < len(texts):
            given = [texts[i] for i in plain]
        rows = self._processor.encode(given)
        unknown, new_id = self._processor.unk_id(), self._table.__getitem__
        for i, row in zip(plain, rows, strict=True):
            # The characters of an unknown piece may be in the vocabulary.
            if unknown not in row:
                found[i] = MarianText([*map(new_id, row)], [], [])
        return [
            self._text(text) if given is None else given
            for text, given in zip(texts, found, strict=True)
        ]

    def encode_batch(
        self,
        texts: Any,
        add_special_tokens: bool = False,
        is_pretokenized: bool = False,
    ) -> Any:
        """Returns a MarianText for each text, or list of words."""
        if not is_pretokenized:
            return [self._text(text) for text in texts]
        found = []
        for words in texts:
            parts = [self._text(word) for word in words]
            found.append(
                MarianText(
                    [i for part in parts for i in part.ids],
                    [o for part in parts for o in part.offsets],
                    [n for n, part in enumerate(parts) for _ in part.ids],
                )
            )
        return found

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> Any:
        """Returns the text of ids."""
        special = {i for i, t in self._added.items() if t.special}
        out, pieces = "", []
        for number in ids:
            token = self._tokens.get(number, self._tokens[self._unknown])
            if number not in special:
                pieces.append(token)
            elif not skip_special_tokens:
                out += self._joiner.decode_pieces(pieces) + token + " "
                pieces = []
        out += self._joiner.decode_pieces(pieces)
        return out.replace(_SPACE, " ").strip()

    def _check(self, texts):
        """Raises TypeError at the errors that `tokenizers` raises it for."""
        try:
            "".join(texts).encode("utf-8")
        except UnicodeEncodeError as error:
            raise TypeError("a text has lone surrogates") from error

    def _text(self, text):
        arguments.checked_text("text", text, "a str or a list of str")
        ids, offsets, words, begin = [], [], [], 0
        for number, part in enumerate(self._pattern.split(text)):
            end = begin + len(part)
            if number % 2:
                ids.append(self.token_to_id(part))
                offsets.append((begin, end))
                words.append(words[-1] + 1 if words else 0)
            elif part:
                self._segment(part, begin, ids, offsets, words)
            begin = end
        return MarianText(ids, offsets, words)

    def _segment(self, text, begin, ids, offsets, words):
        """Adds the pieces of a text without added tokens."""
        if text.startswith(">>") and "<<" in text:
            length = text.index("<<") + 2
            ids.append(self._vocab.get(text[:length], self._unknown))
            offsets.append((begin, begin + length))
            words.append(words[-1] + 1 if words else 0)
            text, begin = text[length:], begin + length
        proto = self._processor.encode(text, return_type="proto")
        # The model counts bytes.
        sizes = [len(c.encode()) for c in text]
        ends = itertools.accumulate(sizes, initial=0)
        starts = {place: index for index, place in enumerate(ends)}
        first = True
        for piece in proto.pieces:
            new = first or piece.piece.startswith(_SPACE)
            word = words[-1] + new if words else 0
            first = False
            ids.append(self._vocab.get(piece.piece, self._unknown))
            start, end = starts[piece.begin], starts[piece.end]
            # As in the other tokenizers, without the space before a word.
            while start < end and text[start].isspace():
                start += 1
            offsets.append((begin + start, begin + end))
            words.append(word)


def load_processor(name: str, model: bytes) -> Any:
    """Returns the `SentencePieceProcessor` of a model file.

    Args:
        name: str. Name of the file, for error messages.
        model: bytes.

    Raises:
        ValueError: not a sentencepiece model.
    """
    processor = packages.sentencepiece().SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        valid = bool(model)
    except RuntimeError:
        valid = False
    if not valid:
        raise ValueError(
            f"`directory` must contain a sentencepiece model in {name}. "
            f"Received: {len(model)} bytes of something else"
        )
    return processor
