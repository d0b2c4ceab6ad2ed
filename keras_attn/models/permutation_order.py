"""Visibility under a permuted prediction order (XLNet)."""

from typing import TYPE_CHECKING, Any, NamedTuple

from keras import ops

from keras_attn.backend import bool_mask, full
from keras_attn.ops import Visibility
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.models.segment_memory import SegmentMemory


class ContentAndQueryVisibility(NamedTuple):
    """Visibility of both streams of an XLNet.

    Args:
        content: `Visibility` of the content stream.
        queries: `Visibility` of the query stream; None without targets.

    Examples:
        >>> from keras_attn.models import permutation_order
        >>> ids = keras.ops.convert_to_tensor([[7, 8, 9]])
        >>> permutation_order.content_and_query_visibility(
        ...     {"token_ids": ids}, None).queries is None
        True
    """

    content: Any
    queries: Any


def content_and_query_visibility(
    parts: dict[str, Any],
    token_mask: TensorLike | None,
    memory: "SegmentMemory | tuple[()]" = (),
    bidirectional_data: bool = False,
    documents: tuple[Any, Any] | None = None,
) -> ContentAndQueryVisibility:
    """Computes the visibility of both streams, once for all blocks.

    Let o[t] be the step at which token t is predicted. Token t of the content
    stream sees s if o[s] <= o[t]; the query for t sees s if o[s] < o[t]. Both
    use the same `causal` rule: keys have order 2 o, content tokens have query
    order 2 o + 1, queries 2 o - 1. The z of the paper is the inverse:
    o = argsort(z).

    Args:
        parts: dict of the inputs of an `XLNet` call.
        token_mask: bool (B, T), True at tokens; None: no padding.
        memory: `SegmentMemory` of M slots, or ().
        bidirectional_data: bool. Whether the second half of the rows is read
            from right to left.
        documents: pair of int32 (B, T) and (B, M), document ids; attention does
            not cross documents. None, or a pair of None: one document.

    Returns:
        `ContentAndQueryVisibility`.
    """
    token_ids = parts["token_ids"]
    rows, length = ops.shape(token_ids)
    memory_length = ops.shape(memory.token_mask)[1] if memory else 0
    slots = ops.arange(memory_length + length, dtype="int32")[None]
    slot_positions = slots
    if bidirectional_data:
        # Half of the rows count down, which flips the sign of distances.
        is_reversed = (
            ops.arange(rows, dtype="int32")[:, None] >= (rows + 1) // 2
        )
        slot_positions = ops.where(
            is_reversed, memory_length + length - 1 - slots, slots
        )
    key_mask = _key_mask(token_mask, memory, rows, length)
    key_positions = slot_positions
    if key_mask is not None:
        key_positions = ops.where(key_mask, slot_positions, -1)
    common = {
        "key_positions": key_positions,
        "padding": "any",
        **_key_ids(parts, memory, documents, rows, memory_length),
    }
    order, mask = parts.get("order"), parts.get("permutation_mask")
    if order is not None:
        order = 2 * ops.cast(order, "int32")
        common |= {
            "causal": True,
            "key_order": _prepend_memory(order, memory_length, rows, -2),
        }
    if mask is not None:
        mask = bool_mask("permutation_mask", mask)
        mask = _prepend_memory(mask, memory_length, rows, True)
    query_ids = _query_ids(parts, documents)
    content = Visibility(
        query_positions=key_positions[:, memory_length:],
        query_order=None if order is None else order + 1,
        attention_mask=None
        if mask is None
        else _allow_self(mask, memory_length),
        # Slots are positions unless half of the rows are reversed.
        offset=None if bidirectional_data else memory_length,
        **query_ids,
        **common,
    )
    targets = _targets(parts)
    if targets is None:
        return ContentAndQueryVisibility(content, None)
    indices = ops.maximum(targets, 0)

    def at_targets(array):
        if array is None:
            return None
        array = array + ops.zeros_like(token_ids[:, :1], dtype=array.dtype)
        return ops.take_along_axis(array, indices, axis=1)

    positions = ops.where(
        targets >= 0, at_targets(key_positions[:, memory_length:]), -1
    )
    if mask is not None:
        mask = ops.take_along_axis(mask, indices[..., None], axis=1)[:, None]
    queries = Visibility(
        query_positions=positions,
        query_order=None if order is None else at_targets(order) - 1,
        attention_mask=mask,
        **{name: at_targets(array) for name, array in query_ids.items()},
        **common,
    )
    return ContentAndQueryVisibility(content, queries)


def _key_mask(token_mask, memory, rows, length):
    if not memory:
        return token_mask
    if token_mask is None:
        token_mask = ops.ones((rows, length), dtype="bool")
    return ops.concatenate([memory.token_mask, token_mask], axis=1)


def _key_ids(parts, memory, documents, rows, memory_length):
    """Returns the ids of the keys, including those of the memory."""
    ids = {}
    token_types = parts.get("segment_ids")
    if token_types is not None:
        # The memory belongs to the first text, as in transformers.
        token_types = ops.cast(token_types, "int32")
        ids["key_token_type_ids"] = _prepend_memory(
            token_types, memory_length, rows, 0
        )
    if documents is not None and documents[0] is not None:
        document_ids = documents[0]
        if memory:
            document_ids = ops.concatenate([documents[1], document_ids], axis=1)
        ids["key_segment_ids"] = document_ids
    return ids


def _query_ids(parts, documents):
    """Returns the ids of the queries."""
    ids = {}
    if parts.get("segment_ids") is not None:
        ids["query_token_type_ids"] = ops.cast(parts["segment_ids"], "int32")
    if documents is not None and documents[0] is not None:
        ids["query_segment_ids"] = documents[0]
    return ids


def _targets(parts):
    """Returns the target positions, int32 (B, P), -1 for none; or None."""
    targets, mapping = (
        parts.get("target_positions"),
        parts.get("target_mapping"),
    )
    if targets is not None:
        return ops.cast(targets, "int32")
    if mapping is None:
        return None
    positions = ops.cast(ops.argmax(mapping, axis=-1), "int32")
    return ops.where(ops.any(mapping > 0, axis=-1), positions, -1)


def _prepend_memory(array, memory_length, rows, value):
    """Prepends `memory_length` slots of `value` along the last axis."""
    if isinstance(memory_length, int) and memory_length == 0:
        return array
    shape = (rows, *ops.shape(array)[1:-1], memory_length)
    memory = full(shape, value, dtype=array.dtype)
    return ops.concatenate([memory, array], axis=-1)


def _allow_self(mask, memory_length):
    """Returns the mask with self-attention allowed, (B, 1, T, M + T)."""
    length = ops.shape(mask)[1]
    slots = ops.arange(memory_length + length, dtype="int32")
    query_ids = slots[memory_length:, None] == slots[None]
    return ops.logical_or(mask, query_ids[None])[:, None]
