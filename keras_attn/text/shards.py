"""Shards: the rows of each batch that one of several processes reads."""

from typing import Any

from keras_attn import checks

MOST_ROWS = 2**16


def check_shard(shard: tuple[int, int]) -> tuple[Any, ...]:
    """Returns `shard` if it is a tuple (index, count), else raises ValueError.

    Args:
        shard: tuple of int, 0 <= index < count.

    Returns:
        Tuple of two int.
    """
    is_pair = isinstance(shard, (tuple, list)) and len(shard) == 2
    numbers = is_pair and all(
        isinstance(n, int) and not isinstance(n, bool) for n in shard
    )
    if not numbers or not 0 <= shard[0] < shard[1] <= MOST_ROWS:
        raise ValueError(
            "`shard` must be a tuple (index, count) with 0 <= index < count "
            f"<= {MOST_ROWS}. Received: shard={checks.shown(shard)}"
        )
    return tuple(shard)


def check_batch_size(batch_size: int, shard: tuple[int, int]) -> None:
    """Raises ValueError unless a batch has equally many rows for each shard.

    Args:
        batch_size: int. Rows of the batches of all shards together.
        shard: tuple, checked.
    """
    if batch_size % shard[1]:
        raise ValueError(
            "`batch_size` must be a multiple of the count of `shard`. "
            f"Received: batch_size={batch_size}, shard={shard}"
        )


def rows_of(shard: tuple[int, int], rows: Any) -> slice:
    """Returns the rows of a shard.

    Args:
        shard: tuple, checked.
        rows: sequence, of a length that the count divides.

    Returns:
        Slice of `rows`. Those of all shards, in order, are `rows`.

    Examples:
        >>> from keras_attn.text.shards import rows_of
        >>> [rows_of((index, 2), "abcdef") for index in range(2)]
        ['abc', 'def']
    """
    index, count = shard
    size = len(rows) // count
    return rows[index * size : (index + 1) * size]
