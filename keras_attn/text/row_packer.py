"""RowPacker: special tokens, truncation and padding."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_attn.text import arguments, packages


class RowPacker:
    """Makes the arrays of `pack` from the encodings of texts.

    Args:
        processor: post-processor of the package `tokenizers`, which adds the
            special tokens.
        pad_id: int, or None if there is no padding token.
        padding_side: str, `"left"` or `"right"`.
        truncation_side: str, the same.
        has_segments: bool. Whether to return segment ids.
    """

    def __init__(
        self,
        processor: Callable[..., Any],
        pad_id: int | None,
        padding_side: str,
        truncation_side: str,
        has_segments: bool,
    ) -> None:
        self._processor, self._pad_id = processor, pad_id
        self._padding_side = padding_side
        self._truncation_side = truncation_side
        self._has_segments = has_segments

    def pack(
        self,
        sides: Sequence[Any],
        max_length: int | None,
        truncation: str,
        stride: int,
        pad: bool,
        with_offsets: bool,
    ) -> dict[str, Any]:
        """Returns the dict of `PretrainedTokenizer.pack`.

        Args:
            sides: list of one or two lists of B encodings, of `text` and
                `text_pair`: those of `tokenizers`, or objects with `ids`,
                `offsets` and `words`.
            max_length: int, or None.
            truncation: str.
            stride: int.
            pad: bool. Whether to pad to `max_length`.
            with_offsets: bool. Whether to return the positions in the text.
        """
        encodings = [encodings_of(side) for side in sides]
        engine = post_processing(self._processor)
        if max_length is not None:
            specials = engine.num_special_tokens_to_add(len(sides) == 2)
            least = specials + len(sides)
            if max_length < least:
                raise ValueError(
                    f"`max_length` must be at least {least}, for the special "
                    "ids and one id per text. "
                    f"Received: max_length={max_length}"
                )
            _check_room(encodings, specials, truncation, stride, max_length)
            engine.enable_truncation(
                max_length,
                stride=stride,
                strategy=truncation,
                direction=self._truncation_side,
            )
        rows, origins = [], []
        for number, texts in enumerate(zip(*encodings, strict=True)):
            packed = engine.post_process(*_pair(texts), True)
            rows.append(packed)
            if stride:
                rows += packed.overflowing
            origins += [number] * (len(rows) - len(origins))
        width = max_length if pad else None
        inside, pad_id = self._padding(rows, width)

        def padded(values, fill, shape=()):
            array = np.full((*inside.shape, *shape), fill, "int32")
            values = [value for row in values for value in row]
            if values:
                array[inside] = np.array(values, "int32")
            return array

        found = {"token_ids": padded((row.ids for row in rows), pad_id)}
        if self._has_segments:
            segments = self._segment_ids(rows, len(sides))
            found["segment_ids"] = padded(segments, 0)
        if with_offsets:
            positions = [
                _positions(row, [side[origin] for side in sides])
                for row, origin in zip(rows, origins, strict=True)
            ]
            offsets, words = (
                zip(*positions, strict=True) if positions else ((), ())
            )
            found["offsets"] = padded(offsets, 0, (2,))
            found["word_ids"] = padded(words, -1)
            numbers = (map(_or_minus_one, row.sequence_ids) for row in rows)
            found["sequence_ids"] = padded(numbers, -1)
            found["rows"] = np.array(origins, "int32")
        return found

    def _padding(self, rows, width):
        """Returns a bool (rows, width), True at tokens, and the padding id."""
        lengths = np.array([len(row) for row in rows], "int64")
        longest = int(lengths.max(initial=0))
        width = longest if width is None else width
        arguments.batch_shape(max(width, 1), max(len(rows), 1))
        if self._pad_id is None and (lengths < width).any():
            raise ValueError(
                "`text` must have rows of the same length, because this "
                "tokenizer has no padding token; `pack_segments` returns "
                f"a mask instead. Received: lengths up to {longest}, "
                f"to be padded to {width}"
            )
        inside = np.arange(width) < lengths[:, None]
        if self._padding_side == "left":
            inside = inside[:, ::-1]
        return inside, self._pad_id or 0

    def _segment_ids(self, rows, sides):
        """Yields the segment ids of each row.

        The library leaves them 0 in rows after the first one of a text
        (as of tokenizers 0.23.3), so they are those of a short row.
        """
        texts = encodings_of_ids([[0]] * sides)
        engine = post_processing(self._processor)
        short = engine.post_process(*_pair(texts), True)
        pairs = [*zip(short.sequence_ids, short.type_ids, strict=True)]
        of_text = {side: kind for side, kind in pairs if side is not None}
        special = [kind for side, kind in pairs if side is None]
        for row in rows:
            around = iter(special)
            yield [
                next(around) if side is None else of_text[side]
                for side in row.sequence_ids
            ]


def post_processing(processor: Callable[..., Any]) -> Any:
    """Returns a `tokenizers.Tokenizer` that only post-processes.

    A new one for each call of `pack`, because it holds the truncation: threads
    may pack at the same time.

    Args:
        processor: post-processor of the package `tokenizers`.
    """
    library = packages.tokenizers()
    engine = library.Tokenizer(
        library.models.WordLevel({"?": 0}, unk_token="?")
    )
    engine.post_processor = processor
    return engine


def encodings_of_ids(rows: Sequence[Sequence[int]]) -> Any:
    """Returns `tokenizers.Encoding`s with given ids.

    Args:
        rows: list of lists of int.
    """
    library = packages.tokenizers()
    # The token of an id is its number: only the ids are read.
    names = {str(i): i for row in rows for i in row}
    names["?"] = max(names.values(), default=-1) + 1
    engine = library.Tokenizer(library.models.WordLevel(names, unk_token="?"))
    return engine.encode_batch(
        [[str(i) for i in row] for row in rows],
        is_pretokenized=True,
        add_special_tokens=False,
    )


def encodings_of(side: Any) -> Any:
    """Returns encodings of `tokenizers`, which can be truncated."""
    if side and not hasattr(side[0], "overflowing"):
        return encodings_of_ids([text.ids for text in side])
    return side


def _positions(row, texts):
    """Returns the offsets and the word indices of the tokens of a row.

    Args:
        row: `tokenizers.Encoding`, packed.
        texts: list of what `pack` of RowPacker got for each side of it.
    """
    words = [*map(_or_minus_one, row.word_ids)]
    if any(hasattr(text, "overflowing") for text in texts):
        return row.offsets, words
    # The engine of Marian has the positions itself: those of the row count
    # its tokens.
    tokens = [*zip(row.sequence_ids, words, strict=True)]
    return (
        [
            (0, 0) if side is None else texts[side].offsets[token]
            for side, token in tokens
        ],
        [
            -1 if side is None else texts[side].words[token]
            for side, token in tokens
        ],
    )


def _or_minus_one(value):
    return -1 if value is None else value


def _pair(encodings):
    return encodings if len(encodings) == 2 else (encodings[0], None)


def _check_room(sides, specials, truncation, stride, max_length):
    """Raises ValueError if a row has no room for a token after the stride."""
    room = max_length - specials
    cut = 1 if truncation == "only_second" else 0
    for encodings in zip(*sides, strict=True):
        lengths = [len(encoding) for encoding in encodings]
        if sum(lengths) <= room:
            continue
        whole = 0
        if len(lengths) == 2 and truncation != "longest_first":
            whole = lengths[1 - cut]
        if room - whole <= stride:
            raise ValueError(
                f"`max_length` must leave room for more than `stride`={stride} "
                "tokens next to the text that is not truncated, of "
                f"{whole} tokens. Received: max_length={max_length}"
            )
