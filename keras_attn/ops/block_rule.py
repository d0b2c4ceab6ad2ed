"""`Visibility` for kernels that process one block at a time."""

import dataclasses
from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import pad, reduce_max, reduce_min
from keras_attn.ops.positions import default_positions
from keras_attn.ops.visibility import Visibility, slot_offset
from keras_attn.typing import TensorLike

_FAR = 1 << 30


class BlockRule(NamedTuple):
    """Computes the mask of a block from metadata of its queries and keys.

    Metadata are F integers per query or key, the first of which is the
    position. A rule contains no tensors and is hashable, so that a program
    compiled for it can be cached.

    Args:
        visibility: `Visibility` without tensors, its static part.
        metadata: tuple of F str or None. The `Visibility` field of each
            integer: `"positions"`, `"order"`, `"segment_ids"`; None for a
            position that only a bias needs.
    """

    visibility: Visibility
    metadata: tuple[Any, ...]

    def __call__(
        self,
        query_metadata: TensorLike,
        key_metadata: TensorLike,
        mask: TensorLike | None,
    ) -> Any:
        """Returns the mask of a block.

        Args:
            query_metadata: int32 (F, B, t).
            key_metadata: int32 (F, B, s).
            mask: bool (B, N, t, s), size-1 axes allowed, or None.

        Returns:
            Bool (B, N, t, s), size-1 axes allowed; None if every query sees
            every key.
        """
        fields = {"attention_mask": mask}
        for number, name in enumerate(self.metadata):
            if name is not None:
                fields[f"query_{name}"] = query_metadata[number]
                fields[f"key_{name}"] = key_metadata[number]
        visibility = dataclasses.replace(self.visibility, **fields)
        return visibility.to_mask(None, None)


class BlockMetadata(NamedTuple):
    """Visibility as arguments of a blockwise kernel.

    Args:
        rule: `BlockRule`, or None if every query sees every key.
        query: int32 (F, B, T), the batch axis may have size 1.
        key: int32 (F, B, S), the batch axis may have size 1.
        mask: bool (B, N, T, S), size-1 axes allowed, or None.
    """

    rule: BlockRule | None
    query: Any
    key: Any
    mask: Any


def block_metadata(
    visibility: Visibility,
    query_length: int,
    key_length: int,
    query_pad: int = 0,
    key_pad: int = 0,
) -> BlockMetadata:
    """Splits a `Visibility` into a static rule and metadata tensors.

    Args:
        visibility: `Visibility`.
        query_length: int. T.
        key_length: int. S.
        query_pad: int. Number of padding queries that the kernel appends.
        key_pad: int. Number of padding keys that the kernel appends; masked.

    Returns:
        `BlockMetadata`, including the appended queries and keys.
    """
    v = visibility
    pads = query_pad, key_pad
    positions = _pair(v.query_positions, v.key_positions)
    ordered = v.causal and not v.query_order is v.key_order is None
    segmented = v.query_segment_ids is not None
    padded = any(pads) or positions is not None
    default = default_positions(query_length), default_positions(key_length)
    positions = _filled(positions, default)
    name = "positions" if padded or v.window is not None else None
    if name is None and v.causal and not ordered:
        name = "order"
    metadata = [(name, positions, -1)]
    if ordered:
        pair = _pair(v.query_order, v.key_order)
        metadata.append(("order", _filled(pair, positions), 0))
    if segmented:
        metadata.append(
            ("segment_ids", (v.query_segment_ids, v.key_segment_ids), 0)
        )
    mask = _padded_mask(v.attention_mask, pads)
    query, key = (
        _stacked(
            [(pair[side], fill) for _, pair, fill in metadata], missing, length
        )
        for side, missing, length in (
            (0, query_pad, query_length),
            (1, key_pad, key_length),
        )
    )
    rule = BlockRule(
        Visibility(causal=v.causal, strict=v.strict, window=v.window),
        tuple(name for name, _, _ in metadata),
    )
    if mask is None and not any(rule.metadata):
        rule = None
    return BlockMetadata(rule, query, key, mask)


def block_spans(
    metadata: BlockMetadata, query_block: int, key_block: int
) -> Any:
    """Finds the blocks of keys that each block of queries may see.

    A pair of blocks is skipped if the order, the window and the segments mask
    all its pairs of tokens in every row of the batch. A span covers all blocks
    from the first to the last that is not skipped.

    Args:
        metadata: `BlockMetadata`; lengths are multiples of the block sizes.
        query_block: int. t, queries per block.
        key_block: int. s, keys per block.

    Returns:
        Int32 (T / t, 2) and (S / s, 2): ranges [first, end) of key blocks per
        query block, and of query blocks per key block.
    """
    query_blocks = metadata.query.shape[2] // query_block
    key_blocks = metadata.key.shape[2] // key_block
    if metadata.rule is None:
        return (
            ops.convert_to_tensor([[0, key_blocks]] * query_blocks, "int32"),
            ops.convert_to_tensor([[0, query_blocks]] * key_blocks, "int32"),
        )
    v, names = metadata.rule.visibility, metadata.rule.metadata
    query = _ranges(metadata.query, query_blocks, query_block, names)
    key = _ranges(metadata.key, key_blocks, key_block, names)
    # Broadcast to (query blocks, key blocks, B).
    query = {name: [x[:, None] for x in pair] for name, pair in query.items()}
    key = {name: [x[None] for x in pair] for name, pair in key.items()}
    near = query["token_mask"][0] & key["token_mask"][0]
    order = "order" if "order" in names else "positions"
    if v.causal:
        near &= query[order][1] >= key[order][0]
    if v.window is not None:
        (first, last), (key_first, key_last) = (
            query["positions"],
            key["positions"],
        )
        gap = ops.maximum(first - key_last, key_first - last)
        near &= gap < v.window
    if "segment_ids" in names:
        (first, last), (key_first, key_last) = (
            query["segment_ids"],
            key["segment_ids"],
        )
        near &= (first <= key_last) & (key_first <= last)
    near = ops.any(near, axis=-1)
    return _span(near), _span(ops.transpose(near))


def static_block_spans(
    visibility: Visibility,
    query_length: int,
    key_length: int,
    query_block: int,
    key_block: int,
) -> tuple[Any, ...]:
    """Bounds the blocks of keys that each block of queries may see.

    For kernels that cannot read `block_spans`: it uses no values, and is wider
    unless distances and the order follow from slot indices.

    Args:
        visibility: `Visibility`.
        query_length: int. T, a multiple of `query_block`.
        key_length: int. S, a multiple of `key_block`.
        query_block: int. t, queries per block.
        key_block: int. s, keys per block.

    Returns:
        Tuple of T / t pairs of int: ranges [first, end) of key blocks.
    """
    v = visibility
    offset = 0 if v.padding == "right" else slot_offset(v)
    if not isinstance(offset, int):
        offset = None
    behind = ahead = None  # maximum distances in slots
    if v.window is not None and offset is not None:
        behind, ahead = v.window - 1 - offset, v.window - 1 + offset
    if v.causal and (v.slot_order or v.query_order is v.key_order is None):
        later = 0 if v.slot_order else offset
        if later is not None:
            ahead = later if ahead is None else min(ahead, later)
    spans = []
    for start in range(0, query_length, query_block):
        first, end = 0, key_length // key_block
        if behind is not None:
            first = max((start - behind) // key_block, 0)
        if ahead is not None:
            last = start + query_block - 1 + ahead
            end = min(max(last // key_block + 1, 0), end)
        spans.append((min(first, end), end))
    return tuple(spans)


def _ranges(metadata, blocks, size, names):
    """Returns the range of each metadata field per block, (blocks, B) each."""
    batch = ops.shape(metadata)[1]
    metadata = ops.reshape(metadata, (metadata.shape[0], batch, blocks, size))
    metadata = ops.transpose(metadata, (0, 2, 1, 3))
    padded = "positions" in names
    if padded:
        token_mask = metadata[0] >= 0
    else:
        token_mask = ops.ones_like(metadata[0], "bool")
    some = ops.any(token_mask, -1)
    ranges = {"token_mask": (some, some)}
    for number, name in enumerate(names):
        if name is not None:
            ranges[name] = (
                reduce_min(ops.where(token_mask, metadata[number], _FAR), -1),
                reduce_max(ops.where(token_mask, metadata[number], -_FAR), -1),
            )
    return ranges


def _span(near):
    number = ops.arange(near.shape[1], dtype="int32")
    first = reduce_min(ops.where(near, number, near.shape[1]), axis=1)
    last = reduce_max(ops.where(near, number + 1, 0), axis=1)
    return ops.stack([ops.minimum(first, last), last], axis=1)


def _pair(query, key):
    return None if query is None and key is None else (query, key)


def _filled(pair, default):
    if pair is None:
        return default
    return tuple(
        other if given is None else given
        for given, other in zip(pair, default, strict=True)
    )


def _stacked(metadata, missing, length):
    # The static length is known even if that of the mask is not.
    tensors = [
        ops.reshape(ops.cast(tensor, "int32"), (-1, length))
        for tensor, _ in metadata
    ]
    if missing:
        tensors = [
            pad(tensor, ((0, 0), (0, missing)), fill)
            for tensor, (_, fill) in zip(tensors, metadata, strict=True)
        ]
    if len(tensors) == 1:
        return tensors[0][None]
    batch = [tensor.shape[0] for tensor in tensors]
    if len(set(batch)) > 1:
        most = next(
            x for x, size in zip(tensors, batch, strict=True) if size != 1
        )
        tensors = [
            ops.broadcast_to(x, ops.shape(most)) if x.shape[0] == 1 else x
            for x in tensors
        ]
    return ops.stack(tensors)


def _padded_mask(mask, pads):
    if mask is None:
        return None
    widths = [(0, 0), (0, 0)] + [
        (0, 0 if mask.shape[axis] == 1 else missing)
        for axis, missing in zip((2, 3), pads, strict=True)
    ]
    if not any(after for _, after in widths):
        return mask
    return pad(mask, widths, False)
