"""Positions: integers that say where a token stands."""

from keras import ops


def default_positions(length):
    """Returns the positions of a sequence in which every token is there.

    Args:
        length: int or scalar tensor. T, in tokens.

    Returns:
        Int32 (1, T): 0, 1, 2, ...

    Examples:
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.positions.default_positions(3)).tolist()
        [[0, 1, 2]]
    """
    return ops.expand_dims(ops.arange(length, dtype="int32"), 0)


def positions_from_mask(mask):
    """Counts the tokens of each row: their positions, and -1 for padding.

    Args:
        mask: bool (B, T), True where there is a token.

    Returns:
        Int32 (B, T). Left-padded rows count from 0 too.

    Examples:
        >>> mask = keras.ops.convert_to_tensor([[False, True, True, False]])
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.positions_from_mask(mask)).tolist()
        [[-1, 0, 1, -1]]
    """
    mask = ops.cast(mask, "bool")
    count = ops.cumsum(ops.cast(mask, "int32"), axis=1)
    return ops.where(mask, count - 1, -1)


def packed_positions(segments, mask=None):
    """Counts the tokens of each sentence of a packed row.

    A sentence is a run of tokens with one segment id. Slots without a token
    are passed over: padding before, between or after sentences, or inside one,
    changes nothing.

    Args:
        segments: int (B, T), the sentence that each slot belongs to.
        mask: bool (B, T), True where there is a token. Default: everywhere.

    Returns:
        Int32 (B, T), from 0 in every sentence; -1 where there is no token.

    Examples:
        >>> segments = keras.ops.convert_to_tensor([[1, 1, 1, 2, 2]])
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.packed_positions(segments)).tolist()
        [[0, 1, 2, 0, 1]]
    """
    if mask is None:
        return _restarting(segments)
    mask = ops.cast(mask, "bool")
    rank = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
    # The tokens alone, side by side; behind the last one stands anything.
    slots = ops.minimum(_slots(mask), ops.shape(mask)[1] - 1)
    positions = _restarting(ops.take_along_axis(segments, slots, axis=1))
    positions = ops.take_along_axis(positions, ops.maximum(rank, 0), axis=1)
    return ops.where(mask, positions, -1)


def _restarting(segments):
    change = ops.not_equal(segments[:, 1:], segments[:, :-1])
    start = ops.concatenate(
        [ops.ones_like(segments[:, :1], dtype="bool"), change], axis=1
    )
    run = ops.cumsum(ops.cast(start, "int32"), axis=1) - 1
    first = ops.take_along_axis(_slots(start), run, axis=1)
    return default_positions(ops.shape(segments)[1]) - first


def _slots(flags):
    """The slots (B, T) of the flags that are set, in order, then T."""
    length = ops.shape(flags)[1]
    slots = ops.where(flags, default_positions(length), length)
    return ops.sort(ops.cast(slots, "int32"), axis=1)
