"""Token ids of the synthetic sequence tasks, and their splits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.datasets.content_split import split_of
from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.stable_random import StableRandom
from keras_attn.typing import Tensor, TensorLike

# The defaults of `keras_attn.models.Transformer`, and an id for masked tokens.
PAD_ID, START_ID, END_ID, MASK_ID, FIRST_ID = range(5)

_MOST_TOKENS, _LARGEST_SIZE = 2**28, 2**20
_CHUNK_ROWS, _CHUNK_TOKENS = 1024, 2**20
# A split has 1 in 20 of many sequences, but may have none of a few.
_MOST_DRAWS, _LEAST_FOUND = 20_000, 1 / 1000


def check_size(
    name: str, value: TensorLike, least: int = 1, most: float = _LARGEST_SIZE
) -> Any:
    """Returns `value` if it is an int in [least, most], else raises."""
    return checks.integer(name, value, least, most)


def draw_rows(
    n: int,
    seed: int,
    split: str,
    length: int,
    draw: Callable[..., Any],
    content: Callable[..., Any],
    width: int | None = None,
) -> list[Tensor]:
    """Draws rows that belong to a split.

    Rows are drawn in chunks of a size that does not depend on n, so that more
    rows of the same seed begin with the same rows.

    Args:
        n: int >= 0. N, number of rows.
        seed: int >= 0.
        split: "train", "validation" or "test".
        length: int. Tokens per row.
        draw: callable of a `StableRandom` and a number of rows C. Returns a
            tuple of arrays (C, ...).
        content: callable of these arrays. Returns int (C, K): the row that
            decides the split. Ids below `FIRST_ID` are ignored.
        width: int. The most numbers that `draw` needs per row. Default None:
            `length`.

    Returns:
        List of arrays (N, ...).

    Raises:
        ValueError: an argument is invalid, or no rows belong to the split.
    """
    check_arguments(n, seed, split, most=None)
    if n * length > _MOST_TOKENS:
        raise ValueError(
            f"`n` must be at most {_MOST_TOKENS // length}, for rows of "
            f"{length} tokens. Received: n={checks.shown(n)}"
        )
    random = StableRandom(seed)
    count = min(_CHUNK_ROWS, max(1, _CHUNK_TOKENS // (width or length)))
    chunks, found, drawn = [], 0, 0
    while found < n or not chunks:
        arrays = draw(random, count)
        rows = [
            row
            for row, ids in enumerate(content(arrays))
            if split_of(_text(ids)) == split
        ]
        chunks.append([array[rows] for array in arrays])
        found += len(rows)
        drawn += count
        if drawn >= _MOST_DRAWS and found < min(n, _LEAST_FOUND * drawn):
            raise ValueError(
                "`split` must be one that has sequences of these sizes. Longer "
                "sequences or more symbols are needed. "
                f"Received: split={split!r}"
            )
    return [np.concatenate(parts)[:n] for parts in zip(*chunks, strict=True)]


def permutations(random: StableRandom, count: int, size: int) -> Tensor:
    """Returns int64 (count, size): in each row a permutation of indices."""
    return random.uniform((count, size)).argsort(axis=1, kind="stable")


def _text(ids):
    return " ".join(str(one) for one in ids.tolist() if one >= FIRST_ID)
