"""Memory of earlier segments: the block inputs of previous tokens."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import reduce_max
from keras_attn.typing import Tensor, TensorLike


class SegmentMemory(NamedTuple):
    """The inputs of each block for the last M tokens.

    A nest of tensors. The tokens of each row are contiguous, at its end.

    Args:
        states: tuple, one float (B, M, D) per block.
        token_mask: bool (B, M), True at tokens.

    Examples:
        >>> memory = keras_attn.models.segment_memory.empty(2, 5, 1, 8)
        >>> tuple(memory.states[0].shape), tuple(memory.token_mask.shape)
        ((2, 5, 8), (2, 5))
    """

    states: tuple[Tensor, ...]
    token_mask: Any


def empty(
    rows: int, length: int, layers: int, width: int, dtype: str = "float32"
) -> SegmentMemory:
    """Returns a memory of `length` slots without tokens."""
    return SegmentMemory(
        tuple(ops.zeros((rows, length, width), dtype) for _ in range(layers)),
        ops.zeros((rows, length), "bool"),
    )


def update(
    memory: SegmentMemory,
    states: Sequence[Any],
    token_mask: TensorLike,
    padded: bool,
) -> SegmentMemory:
    """Returns the memory after a segment, with the same number of slots.

    Args:
        memory: `SegmentMemory` of M slots.
        states: list, one float (B, T, D) per block, of the segment.
        token_mask: bool (B, M + T). True at tokens that later segments may
            attend to.
        padded: bool. Whether the segment may have padding after its tokens.

    Returns:
        `SegmentMemory` of M slots, without gradients.
    """
    length = ops.shape(memory.token_mask)[1]
    total = ops.shape(token_mask)[1]
    if padded:
        # The last M slots up to the last token of each row.
        slots = ops.arange(total, dtype="int32")
        end = reduce_max(
            ops.where(token_mask, slots + 1, 0), axis=1, keepdims=True
        )
        slot_indices = end - length + ops.arange(length, dtype="int32")
        inside = slot_indices >= 0
        slot_indices = ops.maximum(slot_indices, 0)
        new_token_mask = ops.logical_and(
            ops.take_along_axis(token_mask, slot_indices, axis=1), inside
        )

    def last(previous, state):
        both = ops.concatenate(
            [previous, ops.cast(state, previous.dtype)], axis=1
        )
        if not padded:
            return both[:, total - length :]
        return ops.take_along_axis(both, slot_indices[..., None], axis=1)

    return SegmentMemory(
        tuple(
            ops.stop_gradient(last(previous, state))
            for previous, state in zip(memory.states, states, strict=True)
        ),
        new_token_mask if padded else token_mask[:, total - length :],
    )
