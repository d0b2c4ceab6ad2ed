"""BERT's input rows: one or two segments with special tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.arguments import LONGEST_ROW
from keras_attn.text.sentence_pairs import cut_pair


def pack_segments(
    first: Sequence[Sequence[int]],
    second: Sequence[Sequence[int]] | None = None,
    *,
    start_id: int,
    end_id: int,
    length: int | None = None,
    pad_to_length: bool = False,
) -> dict[str, np.ndarray]:
    """Makes inputs of an `Encoder`, `Bert` or `GPT` from one or two segments.

        start first end    or    start first end second end

    as `WordPieceTokenizer.pack` does with `[CLS]` and `[SEP]` (Devlin et al.
    2019, https://arxiv.org/abs/1810.04805), for the ids of any tokenizer. The
    padding mask is returned too, because a tokenizer may have no padding token.

    Args:
        first: list of B lists of ids.
        second: list of B lists of ids. Default None: one segment.
        start_id: int. The first id of each row.
        end_id: int. The id after each segment.
        length: int. Maximum ids per row, special ids included. Longer rows are
            truncated at the end, the longer segment first. Default None: no
            truncation.
        pad_to_length: bool. Whether to pad all rows to `length`. Default False:
            to the longest row.

    Returns:
        Dict of "token_ids" int32 (B, T), 0 at padding; "segment_ids" int32
        (B, T), 1 in the second segment and at its end, otherwise 0; and
        "padding_mask" bool (B, T), True at tokens.

    Raises:
        ValueError: an argument has another type, `second` has another number of
            rows, or `length` is too short for the special ids and one id per
            segment.

    Examples:
        >>> inputs = keras_attn.text.pack_segments(
        ...     [[5, 6], [7]], [[8], [9]], start_id=1, end_id=2)
        >>> inputs["token_ids"].tolist()
        [[1, 5, 6, 2, 8, 2], [1, 7, 2, 9, 2, 0]]
        >>> inputs["segment_ids"][0].tolist()
        [0, 0, 0, 0, 1, 1]
    """
    arguments.one_id("start_id", start_id)
    arguments.one_id("end_id", end_id)
    sides = [
        [
            arguments.id_list(name, row, 2**31)
            for row in arguments.text_list(name, rows, "a list of lists of ids")
        ]
        for name, rows in (("first", first), ("second", second))
        if name == "first" or rows is not None
    ]
    if len(sides[0]) != len(sides[-1]):
        raise ValueError(
            f"`second` must have as many rows as `first`, {len(sides[0])}. "
            f"Received: {len(sides[1])}"
        )
    # No id is -1.
    inputs = packed(sides, start_id, end_id, -1, length, pad_to_length)
    mask = inputs["token_ids"] >= 0
    ids = np.where(mask, inputs["token_ids"], 0)
    return inputs | {"token_ids": ids, "padding_mask": mask}


def packed(
    sides: Sequence[Any],
    start_id: int,
    end_id: int,
    pad_id: int,
    length: int | None = None,
    pad_to_length: bool = False,
) -> dict[str, Any]:
    """Concatenates the segments of each row, each followed by an end id.

    Args:
        sides: list of one or two lists of B lists of ids.
        start_id: int. The first id of each row.
        end_id: int. The id after each segment.
        pad_id: int.
        length: int. Maximum ids per row; None: no truncation.
        pad_to_length: bool. Whether all rows are `length` long.

    Returns:
        Dict of int32 (B, T): `"token_ids"` and `"segment_ids"`.

    Raises:
        ValueError: a length that is too short for one id per segment.

    Examples:
        >>> from keras_attn.text.packed_segments import packed
        >>> rows = packed([[[5, 6, 7]], [[8]]], 2, 3, 0, length=6)
        >>> rows["token_ids"].tolist(), rows["segment_ids"].tolist()
        ([[2, 5, 6, 3, 8, 3]], [[0, 0, 0, 0, 1, 1]])
    """
    least = 1 + 2 * len(sides)
    checks.boolean("pad_to_length", pad_to_length)
    if length is not None:
        checks.integer("length", length, 1, LONGEST_ROW)
        if length < least:
            raise ValueError(
                f"`length` must be at least {least}, for the special ids "
                f"and one id per segment. Received: length={length}"
            )
    elif pad_to_length:
        raise ValueError(
            "`length` must be given if `pad_to_length` is True. Received: "
            "length=None"
        )
    rows, segments = [], []
    for parts in zip(*sides, strict=True):
        row, numbers = [start_id], [0]
        for number, part in enumerate(_fitting(parts, length)):
            row += [*part, end_id]
            numbers += [number] * (len(part) + 1)
        rows.append(row)
        segments.append(numbers)
    width = length if pad_to_length else max(map(len, rows), default=0)
    return {
        "token_ids": _filled(rows, width, pad_id),
        "segment_ids": _filled(segments, width, 0),
    }


def _fitting(parts, length):
    if length is None:
        return parts
    room = length - 1 - len(parts)
    if len(parts) == 1:
        return [parts[0][:room]]
    return cut_pair(*parts, room)


def _filled(rows, width, value):
    out = np.full((len(rows), width), value, "int32")
    for line, row in zip(out, rows, strict=True):
        line[: len(row)] = row
    return out
