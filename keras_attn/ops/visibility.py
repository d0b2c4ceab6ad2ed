"""Attention masks built from positions, order, segments and windows."""

import dataclasses
from typing import Any

from keras import ops

from keras_attn import checks
from keras_attn.backend import bool_mask
from keras_attn.ops.mask_carriers import asked_mask, carries
from keras_attn.ops.positions import (
    default_positions,
    packed_positions,
    positions_from_mask,
)
from keras_attn.typing import Tensor, TensorLike


@dataclasses.dataclass(frozen=True)
class Visibility:
    """Specification of which keys each query may see.

    Query t sees key s when

        key_positions[s] >= 0 and query_positions[t] >= 0
        and (not causal or query_order[t] >= key_order[s])  # > with strict
        and (window is None or |query_positions[t] - key_positions[s]| < window)
        and (no segments or query_segment_ids[t] == key_segment_ids[s])
        and attention_mask[t, s], if given.

    Args:
        query_positions: int32 (B, T), tokens from 0, -1 for padding. Default
            None: 0..T-1, no padding.
        key_positions: int32 (B, S), the same for keys.
        query_order: int32 (B, T). The order compared by `causal`; default None:
            the position. XLNet passes twice its prediction order here, plus or
            minus 1 (`keras_attn/models/permutation_order.py`).
        key_order: int32 (B, S), the same for keys.
        query_segment_ids: int32 (B, T). Queries see only keys of their segment.
        key_segment_ids: int32 (B, S), the same for keys.
        attention_mask: bool broadcastable to (B, N, T, S), rank 4.
        causal: bool. Whether keys later in the order are masked.
        strict: bool. With `causal`, also masks keys of the same order.
        window: int >= 1. Keys at this distance or further are masked.
        padding: `"none"`, `"right"` or `"any"`: where positions may be -1,
            since compiled code cannot read values. `"right"` promises that each
            row counts 0, 1, 2, ..., followed only by -1.
        offset: int. A promise: if the query in slot t sees the key in slot s,
            the query is t + `offset` - s tokens after the key. Default None:
            distances depend on the positions; without positions it is 0.
        slot_order: bool. A promise: `query_order` and `key_order` are the slot
            indices.
        query_token_type_ids: int32 (B, T). Which of two texts a token belongs
            to. Masks nothing, but an attention position may use it in scores,
            as XLNet's does.
        key_token_type_ids: int32 (B, S), the same for keys.

    Raises:
        ValueError: `window` or `padding` is out of range; or `attention_mask`
            may be additive: it has values other than 0 and 1, or is a float
            mask whose values cannot be read.

    Examples:
        >>> see = keras_attn.ops.Visibility(causal=True)
        >>> mask = see.to_mask(2, 3)
        >>> keras.ops.convert_to_numpy(mask)[0, 0].tolist()
        [[True, False, False], [True, True, False]]
    """

    query_positions: Any = None
    key_positions: Any = None
    query_order: Any = None
    key_order: Any = None
    query_segment_ids: Any = None
    key_segment_ids: Any = None
    attention_mask: Any = None
    causal: bool = False
    strict: bool = False
    window: int | None = None
    padding: str = "none"
    offset: int | None = None
    slot_order: bool = False
    query_token_type_ids: Any = None
    key_token_type_ids: Any = None

    def __post_init__(self) -> None:
        """Checks the arguments, and converts the mask to bool."""
        for name in _OF_TOKENS:
            given = getattr(self, name)
            # Called in each decoding step: fast where nothing is wrong.
            if given is not None and not _of_tokens(given):
                checks.rank(name, checks.tensor(name, given), 2)
                checks.integers(name, given)
        for name in _FLAGS:
            flag = getattr(self, name)
            # `0 == False`, and an array would be compared item by item.
            if not isinstance(flag, int) or flag not in (0, 1):
                checks.boolean(name, flag)
        if self.offset is not None:
            checks.count("offset", self.offset, least=None)
        if self.window is not None:
            checks.integer("window", self.window, 1)
        checks.choice("padding", self.padding, ("none", "right", "any"))
        if self.attention_mask is not None:
            checks.tensor("attention_mask", self.attention_mask)
            checks.rank("attention_mask", self.attention_mask, 4)
            mask = bool_mask("attention_mask", self.attention_mask)
            object.__setattr__(self, "attention_mask", mask)

    def to_mask(
        self, query_length: int | TensorLike, key_length: int | TensorLike
    ) -> bool | None:
        """Returns the boolean mask.

        Args:
            query_length: int or scalar tensor. T.
            key_length: int or scalar tensor. S.

        Returns:
            Bool, rank 4, broadcastable to (B, N, T, S); None if every query
            sees every key.

        Examples:
            >>> keras_attn.ops.Visibility().to_mask(2, 2) is None
            True
        """
        query_positions, key_positions = (
            self.query_positions,
            self.key_positions,
        )
        parts = []
        if self.attention_mask is not None:
            parts.append(self.attention_mask)
        if query_positions is not None:
            parts.append(query_positions[:, None, :, None] >= 0)
        if key_positions is not None:
            parts.append(key_positions[:, None, None, :] >= 0)
        if self.causal:
            first = _either(self.query_order, query_positions, query_length)
            second = _either(self.key_order, key_positions, key_length)
            first, second = _grid(first, second)
            parts.append(first > second if self.strict else first >= second)
        if self.window is not None:
            first = _either(None, query_positions, query_length)
            second = _either(None, key_positions, key_length)
            first, second = _grid(first, second)
            parts.append(ops.abs(first - second) < self.window)
        if self.query_segment_ids is not None:
            first, second = _grid(self.query_segment_ids, self.key_segment_ids)
            parts.append(ops.equal(first, second))
        if not parts:
            return None
        mask = parts[0]
        for part in parts[1:]:
            mask = ops.logical_and(mask, part)
        return mask


_OF_TOKENS = (
    "query_positions",
    "key_positions",
    "query_order",
    "key_order",
    "query_segment_ids",
    "key_segment_ids",
    "query_token_type_ids",
    "key_token_type_ids",
)
_FLAGS = "causal", "strict", "slot_order"


def _of_tokens(given):
    """Returns whether a value is an integer tensor of rank 2."""
    return len(getattr(given, "shape", ())) == 2 and "int" in str(
        getattr(given, "dtype", None)
    )


def slot_offset(visibility: Visibility) -> int | Tensor:
    """Returns the offset if distances can be computed from slot indices.

    Args:
        visibility: `Visibility`.

    Returns:
        Int or scalar tensor, see `Visibility.offset`, or None.

    Examples:
        >>> keras_attn.ops.visibility.slot_offset(keras_attn.ops.Visibility())
        0
    """
    v = visibility
    if v.offset is None and v.query_positions is None is v.key_positions:
        return 0
    return v.offset


def make_visibility(
    query_length: int | TensorLike,
    key_length: int | TensorLike,
    *,
    query_mask: TensorLike | None = None,
    key_mask: TensorLike | None = None,
    query_positions: TensorLike | None = None,
    key_positions: TensorLike | None = None,
    query_segment_ids: TensorLike | None = None,
    key_segment_ids: TensorLike | None = None,
    attention_mask: TensorLike | None = None,
    causal: bool = False,
    window: int | None = None,
    relative: bool = False,
    offset: int | None = None,
) -> Visibility:
    """Builds a `Visibility` from masks, positions and segment ids.

    A boolean mask is converted to positions: the number of preceding tokens,
    and -1 where it is False. If queries and keys have different masks and the
    order or the distance matters, positions are slot indices instead, so that
    both count from the same slot. With segments, each segment counts from 0.
    Explicit positions take precedence over computed ones; masks still apply.

    Args:
        query_length: int or scalar tensor. T.
        key_length: int or scalar tensor. S.
        query_mask: bool (B, T), True for tokens, False for padding.
        key_mask: bool (B, S), the same for keys.
        query_positions: int32 (B, T), tokens from 0, -1 for padding.
        key_positions: int32 (B, S), the same for keys.
        query_segment_ids: int32 (B, T), one id per segment of a packed row.
            Queries see only keys of their segment.
        key_segment_ids: int32 (B, S), the same for keys.
        attention_mask: bool, (T, S), (B, T, S) or (B, N, T, S).
        causal: bool. Whether keys at later positions are masked.
        window: int. Keys at this distance or further are masked.
        relative: bool. Whether scores depend on the distance of query and key.
        offset: int. As in `Visibility`, if the caller can promise it.

    Returns:
        A `Visibility`.

    Raises:
        ValueError: if the rank or the lengths of `attention_mask` are wrong,
            only one side has segments, or a float mask may be additive.

    Examples:
        >>> mask = keras.ops.convert_to_tensor([[True, False]])
        >>> see = keras_attn.ops.visibility.make_visibility(
        ...     2, 2, query_mask=mask, key_mask=mask)
        >>> keras.ops.convert_to_numpy(see.key_positions).tolist()
        [[0, -1]]
    """
    if query_mask is not None:
        one_mask = query_mask is key_mask
        query_mask = bool_mask("query_mask", query_mask)
        key_mask = query_mask if one_mask else key_mask
    if key_mask is not None:
        key_mask = bool_mask("key_mask", key_mask)
    if (query_segment_ids is None) != (key_segment_ids is None):
        missing = "query" if query_segment_ids is None else "key"
        raise ValueError(
            "`query_segment_ids` and `key_segment_ids` must be given together. "
            f"Received: {missing}_segment_ids=None"
        )
    query_order = key_order = None
    slot_order = False
    counted = query_positions is None and key_positions is None
    padded = not (query_mask is None and key_mask is None and counted)
    one_sequence = (
        query_mask is key_mask and query_segment_ids is key_segment_ids
    )
    if counted and one_sequence and query_segment_ids is not None:
        query_positions = key_positions = packed_positions(
            query_segment_ids, query_mask
        )
    elif counted and one_sequence and query_mask is not None:
        query_positions = key_positions = positions_from_mask(query_mask)
        if causal:
            # Slots have the same order as tokens, without a batch axis.
            query_order = key_order = default_positions(query_length)
            slot_order = True
    else:
        by_index = causal or window is not None or relative
        query_positions = _positions(
            query_positions,
            query_mask,
            query_segment_ids,
            query_length,
            by_index,
        )
        key_positions = _positions(
            key_positions, key_mask, key_segment_ids, key_length, by_index
        )
    return Visibility(
        query_positions=query_positions,
        key_positions=key_positions,
        query_order=query_order,
        key_order=key_order,
        query_segment_ids=query_segment_ids,
        key_segment_ids=key_segment_ids,
        attention_mask=_four_axes(attention_mask, query_length, key_length),
        causal=causal,
        window=window,
        padding="any" if padded else "none",
        offset=offset,
        slot_order=slot_order,
    )


def has_visible_key(
    visibility: Visibility,
    query_length: int | TensorLike,
    key_length: int | TensorLike,
) -> Tensor | None:
    """Returns which queries see at least one key in at least one head.

    Args:
        visibility: `Visibility`.
        query_length: int or scalar tensor. T.
        key_length: int or scalar tensor. S.

    Returns:
        Bool (B, T), a size-1 batch axis allowed; None if all do.

    Examples:
        >>> see = keras_attn.ops.Visibility(causal=True, strict=True)
        >>> seen = keras_attn.ops.visibility.has_visible_key(see, 3, 3)
        >>> keras.ops.convert_to_numpy(seen).tolist()
        [[False, True, True]]
    """
    v = visibility
    simple = v.attention_mask is None
    if simple and _unordered(v):
        return _tokens_on_both_sides(v)
    shared = (
        v.query_positions is v.key_positions
        and v.query_order is v.key_order
        and v.query_segment_ids is v.key_segment_ids
    )
    if simple and shared and not v.strict:
        if v.query_positions is not None:
            # A token of one sequence always sees itself.
            return v.query_positions >= 0
        one_length = isinstance(query_length, int) and (
            query_length == key_length
        )
        if v.window is None or one_length:
            return None
    return ops.any(v.to_mask(query_length, key_length), axis=(1, 3))


def is_key_padding_only(visibility: Visibility) -> bool:
    """Returns whether only padding keys are masked.

    Args:
        visibility: `Visibility`.

    Returns:
        Bool, independent of tensor values.

    Examples:
        >>> keras_attn.ops.visibility.is_key_padding_only(
        ...     keras_attn.ops.Visibility(causal=True))
        False
    """
    v = visibility
    return (
        v.attention_mask is None and v.query_positions is None and _unordered(v)
    )


def implicit_mask(tensor: TensorLike) -> Tensor | None:
    """Returns the implicit Keras mask of a tensor, or None.

    The mask stays on the tensor, which belongs to the caller.

    Args:
        tensor: any tensor.

    Returns:
        Bool (B, T), True for tokens, False for padding; or None.

    Examples:
        >>> ids = keras.ops.convert_to_tensor([[3, 0]])
        >>> x = keras_attn.layers.TokenEmbedding(5, 4)(ids)
        >>> keras.ops.convert_to_numpy(
        ...     keras_attn.ops.visibility.implicit_mask(x)).tolist()
        [[True, False]]
    """
    # Private: Keras does not export its `get_keras_mask`, as of Keras 3.15.1.
    mask = getattr(tensor, "_keras_mask", None)
    if mask is None and tensor is not None and not carries(tensor):
        mask = asked_mask(tensor)
    return mask


def _unordered(v):
    return not v.causal and v.window is None and v.query_segment_ids is None


def _tokens_on_both_sides(v):
    parts = []
    if v.query_positions is not None:
        parts.append(v.query_positions >= 0)
    if v.key_positions is not None:
        parts.append(ops.any(v.key_positions >= 0, axis=1, keepdims=True))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else ops.logical_and(*parts)


def _positions(positions, mask, segments, length, by_index):
    if positions is None and mask is None and segments is None:
        return None
    if positions is None:
        counted_mask = None if by_index else mask
        if segments is not None:
            positions = packed_positions(segments, counted_mask)
        elif counted_mask is not None:
            return positions_from_mask(mask)
        else:
            positions = default_positions(length)
    if mask is not None:
        positions = ops.where(mask, positions, -1)
    return positions


def _either(order, positions, length):
    if order is not None:
        return order
    return default_positions(length) if positions is None else positions


def _grid(first, second):
    return first[:, None, :, None], second[:, None, None, :]


def _four_axes(attention_mask, query_length, key_length):
    if attention_mask is None:
        return None
    checks.tensor("attention_mask", attention_mask)
    rank = len(attention_mask.shape)
    lengths = [
        length if isinstance(length, int) else None
        for length in (query_length, key_length)
    ]
    if rank not in (2, 3, 4) or any(
        None not in (size, length) and size not in (1, length)
        for size, length in zip(attention_mask.shape[-2:], lengths, strict=True)
    ):
        raise ValueError(
            "`attention_mask` must have shape (T, S), (B, T, S) or "
            f"(B, N, T, S), with T={lengths[0]} and S={lengths[1]}. "
            f"Received: {tuple(attention_mask.shape)}"
        )
    mask = ops.cast(bool_mask("attention_mask", attention_mask), "bool")
    if rank == 2:
        return mask[None, None]
    return mask[:, None] if rank == 3 else mask
