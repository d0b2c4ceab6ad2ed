"""Token positions."""

from keras import ops

from keras_attn import checks
from keras_attn.backend import bool_mask, reduce_max
from keras_attn.typing import Tensor, TensorLike


def default_positions(length: int | TensorLike) -> Tensor:
    """Returns the positions of a sequence without padding.

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


def positions_from_mask(mask: TensorLike) -> Tensor:
    """Computes the positions of the tokens of each row, -1 for padding.

    Args:
        mask: bool (B, T), True for tokens, False for padding.

    Returns:
        Int32 (B, T). Left-padded rows count from 0 too.

    Examples:
        >>> mask = keras.ops.convert_to_tensor([[False, True, True, False]])
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.positions_from_mask(mask)).tolist()
        [[-1, 0, 1, -1]]
    """
    checks.rank("mask", checks.tensor("mask", mask), 2)
    mask = bool_mask("mask", mask)
    count = ops.cumsum(ops.cast(mask, "int32"), axis=1)
    return ops.where(mask, count - 1, -1)


def packed_positions(
    segments: TensorLike, mask: TensorLike | None = None
) -> Tensor:
    """Computes positions in packed rows, restarting at each segment.

    A segment is a run of tokens with the same segment id. Padding is not
    counted, whether before, between, after or inside segments.

    Args:
        segments: int (B, T), segment ids.
        mask: bool (B, T), True for tokens, False for padding. Default: no
            padding.

    Returns:
        Int32 (B, T), from 0 in every segment; -1 for padding.

    Examples:
        >>> segments = keras.ops.convert_to_tensor([[1, 1, 1, 2, 2]])
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.packed_positions(segments)).tolist()
        [[0, 1, 2, 0, 1]]
    """
    checks.rank("segments", checks.tensor("segments", segments), 2)
    checks.integers("segments", segments)
    if mask is None:
        return _restarting(segments)
    checks.per_token("mask", checks.tensor("mask", mask), *segments.shape)
    mask = bool_mask("mask", mask)
    rank = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
    # Compacts the tokens to the left; slots after the last one are arbitrary.
    slots = ops.minimum(_slots(mask), ops.shape(mask)[1] - 1)
    positions = _restarting(ops.take_along_axis(segments, slots, axis=1))
    positions = ops.take_along_axis(positions, ops.maximum(rank, 0), axis=1)
    return ops.where(mask, positions, -1)


def sequence_lengths(
    positions: TensorLike, segments: TensorLike | None = None
) -> Tensor:
    """Computes the length of the sequence of each token.

    Args:
        positions: int32 (B, T), -1 for padding, increasing within a segment.
        segments: int (B, T), segment ids, as in `packed_positions`. Default:
            each row is one sequence.

    Returns:
        Int32 (B, 1), or (B, T) with segments: the last position plus 1.

    Examples:
        >>> positions = keras.ops.convert_to_tensor([[0, 1, 2, 0, 1, -1]])
        >>> segments = keras.ops.convert_to_tensor([[1, 1, 1, 2, 2, 2]])
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.positions.sequence_lengths(positions)).tolist()
        [[3]]
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.positions.sequence_lengths(
        ...         positions, segments)).tolist()
        [[3, 3, 3, 2, 2, 2]]
    """
    if positions.shape[1] == 0:
        return ops.zeros((ops.shape(positions)[0], 1), dtype="int32")
    if segments is None:
        return reduce_max(positions, axis=1, keepdims=True) + 1
    length = ops.shape(segments)[1]
    changes = ops.not_equal(segments[:, 1:], segments[:, :-1])
    is_last = ops.concatenate(
        [changes, ops.ones_like(segments[:, :1], dtype="bool")], axis=1
    )
    run = ops.cumsum(ops.cast(is_last, "int32"), axis=1)
    run = run - ops.cast(is_last, "int32")  # the run of each token
    last_slot = ops.take_along_axis(_slots(is_last), run, axis=1)
    mask = positions >= 0
    rank = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1
    rank = ops.take_along_axis(rank, last_slot, axis=1)
    # The last token of the run; padding may follow it.
    slot = ops.take_along_axis(_slots(mask), ops.maximum(rank, 0), axis=1)
    slot = ops.minimum(slot, length - 1)
    return ops.take_along_axis(positions, slot, axis=1) + 1


def _restarting(segments):
    change = ops.not_equal(segments[:, 1:], segments[:, :-1])
    start = ops.concatenate(
        [ops.ones_like(segments[:, :1], dtype="bool"), change], axis=1
    )
    run = ops.cumsum(ops.cast(start, "int32"), axis=1) - 1
    first = ops.take_along_axis(_slots(start), run, axis=1)
    return default_positions(ops.shape(segments)[1]) - first


def _slots(flags):
    """Returns the indices (B, T) of the set flags, in order, then T."""
    length = ops.shape(flags)[1]
    slots = ops.where(flags, default_positions(length), length)
    return ops.sort(ops.cast(slots, "int32"), axis=1)
