"""Who sees whom where tokens are guessed in an order of their own."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops import Visibility


class ContentAndQueryVisibility(NamedTuple):
    """Holds what the content and the queries of an XLNet see.

    Args:
        content: `Visibility` of the tokens.
        queries: `Visibility` of the targets, or None: there are none.

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
    parts, token_mask, memory=(), bidirectional_data=False, documents=None
):
    """Describes who sees whom, once for all blocks.

    With o[t] the order, that is, when token t comes, token t of the content
    sees s where o[s] <= o[t], and the query for t sees s where o[s] < o[t]. One
    rule, `causal`, serves both: tokens are at 2 o, and content looks from 2 o +
    1, a query from 2 o - 1. The z of the paper is the inverse: o = argsort(z).

    Args:
        parts: dict of what an `XLNet` is called on.
        token_mask: bool (B, T), where there is a token; None: everywhere.
        memory: `SegmentMemory` of M slots, or ().
        bidirectional_data: bool. Whether the second half of the rows is read
            from right to left.
        documents: pair of int32 (B, T) and (B, M), numbers of documents, which
            do not see each other; None, or a pair of None: all is one.

    Returns:
        `ContentAndQueryVisibility`.
    """
    token_ids = parts["token_ids"]
    rows, length = ops.shape(token_ids)
    before = ops.shape(memory.token_mask)[1] if memory else 0
    slots = ops.arange(before + length, dtype="int32")[None]
    places = slots
    if bidirectional_data:
        # Half of the rows count down, so that distances change their sign.
        turned = ops.arange(rows, dtype="int32")[:, None] >= (rows + 1) // 2
        places = ops.where(turned, before + length - 1 - slots, slots)
    keys_there = _keys_there(token_mask, memory, rows, length)
    key_positions = places
    if keys_there is not None:
        key_positions = ops.where(keys_there, places, -1)
    common = {
        "key_positions": key_positions,
        "padding": "any",
        **_keys(parts, memory, documents, rows, before),
    }
    order, mask = parts.get("order"), parts.get("permutation_mask")
    if order is not None:
        order = 2 * ops.cast(order, "int32")
        common |= {
            "causal": True,
            "key_order": _behind(order, before, rows, -2),
        }
    if mask is not None:
        mask = _behind(ops.cast(mask, "bool"), before, rows, True)
    own = _own(parts, documents)
    content = Visibility(
        query_positions=key_positions[:, before:],
        query_order=None if order is None else order + 1,
        attention_mask=None if mask is None else _with_itself(mask, before),
        # Slots are places, unless half of the rows are turned.
        offset=None if bidirectional_data else before,
        **own,
        **common,
    )
    targets = _targets(parts)
    if targets is None:
        return ContentAndQueryVisibility(content, None)
    chosen = ops.maximum(targets, 0)

    def at_targets(array):
        if array is None:
            return None
        array = array + ops.zeros_like(token_ids[:, :1], dtype=array.dtype)
        return ops.take_along_axis(array, chosen, axis=1)

    positions = ops.where(
        targets >= 0, at_targets(key_positions[:, before:]), -1
    )
    if mask is not None:
        mask = ops.take_along_axis(mask, chosen[..., None], axis=1)[:, None]
    queries = Visibility(
        query_positions=positions,
        query_order=None if order is None else at_targets(order) - 1,
        attention_mask=mask,
        **{name: at_targets(array) for name, array in own.items()},
        **common,
    )
    return ContentAndQueryVisibility(content, queries)


def _keys_there(token_mask, memory, rows, length):
    if not memory:
        return token_mask
    if token_mask is None:
        token_mask = ops.ones((rows, length), dtype="bool")
    return ops.concatenate([memory.token_mask, token_mask], axis=1)


def _keys(parts, memory, documents, rows, before):
    """What is known of the keys, those of the memory among them."""
    found = {}
    sides = parts.get("segment_ids")
    if sides is not None:
        # A memory is of the first text, as in transformers.
        sides = ops.cast(sides, "int32")
        found["key_token_type_ids"] = _behind(sides, before, rows, 0)
    if documents is not None and documents[0] is not None:
        numbers = documents[0]
        if memory:
            numbers = ops.concatenate([documents[1], numbers], axis=1)
        found["key_segment_ids"] = numbers
    return found


def _own(parts, documents):
    """What is known of the tokens themselves."""
    found = {}
    if parts.get("segment_ids") is not None:
        found["query_token_type_ids"] = ops.cast(parts["segment_ids"], "int32")
    if documents is not None and documents[0] is not None:
        found["query_segment_ids"] = documents[0]
    return found


def _targets(parts):
    """Returns the places that are guessed, int32 (B, P), -1 none; or None."""
    targets, mapping = (
        parts.get("target_positions"),
        parts.get("target_mapping"),
    )
    if targets is not None:
        return ops.cast(targets, "int32")
    if mapping is None:
        return None
    places = ops.cast(ops.argmax(mapping, axis=-1), "int32")
    return ops.where(ops.any(mapping > 0, axis=-1), places, -1)


def _behind(array, before, rows, value):
    """Puts `before` slots of a memory in front of the last axis."""
    if isinstance(before, int) and before == 0:
        return array
    shape = (rows, *ops.shape(array)[1:-1], before)
    memory = ops.full(shape, value, dtype=array.dtype)
    return ops.concatenate([memory, array], axis=-1)


def _with_itself(mask, before):
    """Lets every token see itself; (B, 1, T, M + T)."""
    length = ops.shape(mask)[1]
    slots = ops.arange(before + length, dtype="int32")
    own = slots[before:, None] == slots[None]
    return ops.logical_or(mask, own[None])[:, None]
