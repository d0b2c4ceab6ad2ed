"""The memory of segments: what every block has seen of the tokens before."""

from typing import Any, NamedTuple

from keras import ops


class SegmentMemory(NamedTuple):
    """Holds the inputs that each block had for the last M tokens.

    A plain nest of tensors. Tokens stand at the end of each row, side by side.

    Args:
        states: tuple, one float (B, M, D) a block.
        token_mask: bool (B, M), False where there is no token.

    Examples:
        >>> memory = keras_attn.models.segment_memory.empty(2, 5, 1, 8)
        >>> tuple(memory.states[0].shape), tuple(memory.token_mask.shape)
        ((2, 5, 8), (2, 5))
    """

    states: Any
    token_mask: Any


def empty(rows, length, layers, width, dtype="float32"):
    """Returns a memory of `length` slots in which there is no token."""
    return SegmentMemory(
        tuple(ops.zeros((rows, length, width), dtype) for _ in range(layers)),
        ops.zeros((rows, length), "bool"),
    )


def update(memory, states, token_mask, padded):
    """Returns the memory behind a segment: its last tokens, as many as before.

    Args:
        memory: `SegmentMemory` of M slots.
        states: list, one float (B, T, D) a block, of the segment.
        token_mask: bool (B, M + T). Where a token stands that will still be
            seen.
        padded: bool. Whether the segment may have padding behind its tokens.

    Returns:
        `SegmentMemory` of M slots, through which no gradient goes.
    """
    length = ops.shape(memory.token_mask)[1]
    whole = ops.shape(token_mask)[1]
    if padded:
        # The last M slots up to the last token of each row.
        slots = ops.arange(whole, dtype="int32")
        end = ops.max(
            ops.where(token_mask, slots + 1, 0), axis=1, keepdims=True
        )
        places = end - length + ops.arange(length, dtype="int32")
        inside = places >= 0
        places = ops.maximum(places, 0)
        kept = ops.logical_and(
            ops.take_along_axis(token_mask, places, axis=1), inside
        )

    def last(before, state):
        both = ops.concatenate([before, ops.cast(state, before.dtype)], axis=1)
        if not padded:
            return both[:, whole - length :]
        return ops.take_along_axis(both, places[..., None], axis=1)

    return SegmentMemory(
        tuple(
            ops.stop_gradient(last(before, state))
            for before, state in zip(memory.states, states, strict=True)
        ),
        kept if padded else token_mask[:, whole - length :],
    )
