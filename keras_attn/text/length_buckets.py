"""Length buckets with the least padding."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn.typing import TensorLike


class Bucket(NamedTuple):
    """The pairs of one batch shape.

    Args:
        pairs: int (n,). Indices of the pairs, in the order of the data.
        rows: int. Rows per batch.
        source_length: int. Ids per source, padding included.
        target_length: int. Ids per target, padding included.
    """

    pairs: np.ndarray
    rows: int
    source_length: int
    target_length: int

    @property
    def batches(self) -> int:
        """Batches per epoch; the last may have padding rows."""
        return -(-len(self.pairs) // self.rows)


def best_buckets(
    source_lengths: TensorLike,
    target_lengths: TensorLike,
    tokens_per_batch: int,
    buckets: int,
    rows_multiple_of: int = 1,
) -> list[Any]:
    """Splits pairs into at most `buckets` shapes with the least padding.

    Pairs are sorted by m = max(source length, target length) and split into
    ranges of m. A range has the shape of its longest source and its longest
    target, and tokens_per_batch // max m rows, rounded down to a multiple of n
    (at least n). It costs

        ceil(pairs / rows) rows (source length + target length)

    ids, and the split of the lowest total cost is found exactly, by dynamic
    programming over the lengths that occur.

    Args:
        source_lengths: int (N,), at least 1.
        target_lengths: int (N,), at least 1.
        tokens_per_batch: int. Ids on each side of a batch.
        buckets: int. Maximum number of shapes.
        rows_multiple_of: int. n. Default 1.

    Returns:
        list of Bucket, shortest first.
    """
    longer = np.maximum(source_lengths, target_lengths)
    lengths, index = np.unique(longer, return_inverse=True)
    size = len(lengths)
    buckets = min(buckets, size)
    pairs = np.bincount(index, minlength=size)
    source, target = np.zeros(size, int), np.zeros(size, int)
    np.maximum.at(source, index, source_lengths)
    np.maximum.at(target, index, target_lengths)
    rows = tokens_per_batch // lengths // rows_multiple_of * rows_multiple_of
    rows = np.maximum(rows, rows_multiple_of)

    # best[k][j]: the least cost of the j shortest lengths in k ranges;
    # start[k][j]: where the last of these ranges starts.
    best = np.full((buckets + 1, size + 1), np.inf)
    start = np.zeros((buckets + 1, size + 1), int)
    best[0, 0] = 0
    for j in range(1, size + 1):
        # Over every start i < j of a range i..j-1, longest length first.
        widths = (
            np.maximum.accumulate(source[:j][::-1])
            + np.maximum.accumulate(target[:j][::-1])
        )[::-1]
        held = np.cumsum(pairs[:j][::-1])[::-1]
        cost = -(-held // rows[j - 1]) * rows[j - 1] * widths
        for k in range(1, buckets + 1):
            total = best[k - 1, :j] + cost
            start[k, j] = np.argmin(total)
            best[k, j] = total[start[k, j]]

    found = []
    # Of equal costs, the fewest ranges: fewer shapes to compile.
    k, end = int(np.argmin(best[:, size])), size
    while end:
        begin = start[k, end]
        found.append(
            Bucket(
                np.flatnonzero((index >= begin) & (index < end)),
                int(rows[end - 1]),
                int(source[begin:end].max()),
                int(target[begin:end].max()),
            )
        )
        k, end = k - 1, begin
    return found[::-1]
