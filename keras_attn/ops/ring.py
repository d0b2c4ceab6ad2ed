"""Attention with sequences split over devices."""

import dataclasses
from typing import TYPE_CHECKING, Any

from keras import ops

from keras_attn.backend import Blocking, pad, ring_attention, sequence_split
from keras_attn.ops.block_rule import BlockMetadata, block_metadata, block_spans
from keras_attn.ops.blockwise import block_and_pad, kind_of_bias
from keras_attn.ops.positions import default_positions
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.visibility import Visibility


def attend_ring(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    visibility: "Visibility",
    bias: TensorLike | None,
    scale: float,
    dropout: Any,
) -> Tensor:
    """Computes `attend` where the active layout splits sequences.

    Args:
        query: float (B, T, N, H), T a multiple of the number of devices.
        key: float (B, S, K, H), S a multiple of the number of devices.
        value: float (B, S, K, W).
        visibility: `Visibility`.
        bias: float broadcastable to (B, N, T, S), a `PositionBias`, or None.
        scale: float. Factor on q . k.
        dropout: `WeightDropout` or None.

    Returns:
        Float (B, T, N, W), zero in fully masked rows.

    Raises:
        ValueError: if the function of a `PositionBias` is not hashable.
    """
    split = sequence_split()
    lengths = query.shape[1], key.shape[1]
    window = visibility.window
    query_block, query_pad = block_and_pad(lengths[0] // split.devices, window)
    key_block, key_pad = block_and_pad(lengths[1] // split.devices, window)

    def padded(tensor, *pads, fill=0):
        for axis, missing in pads:
            if missing and (axis == 1 or tensor.shape[axis] > 1):
                tensor = _padded(tensor, axis, split.devices, missing, fill)
        return tensor

    if query_pad or key_pad:
        visibility = _with_positions(visibility, *lengths)
    metadata = block_metadata(visibility, *lengths)
    kind, bias = kind_of_bias(bias)
    if kind == "tensor":
        bias = padded(bias, (2, query_pad), (3, key_pad))
    mask = metadata.mask
    if mask is not None:
        mask = padded(mask, (2, query_pad), (3, key_pad), fill=False)
    output = ring_attention(
        split,
        Blocking(
            query_block,
            key_block,
            heads=query.shape[2],
            key_heads=key.shape[2],
            scale=float(scale),
            rule=metadata.rule,
            bias=kind,
            rate=0.0 if dropout is None else dropout.rate,
        ),
        padded(query, (1, query_pad)),
        padded(key, (1, key_pad)),
        padded(value, (1, key_pad)),
        bias=bias,
        # -1 is a position that masks a token, whatever its other metadata are.
        query_metadata=padded(metadata.query, (2, query_pad), fill=-1),
        key_metadata=padded(metadata.key, (2, key_pad), fill=-1),
        spans=_spans,
        mask=mask,
        seed=None if dropout is None else dropout.seed,
    )
    if query_pad:
        shape = (-1, split.devices, output.shape[1] // split.devices)
        output = ops.reshape(output, (*shape, *output.shape[2:]))
        output = output[:, :, : lengths[0] // split.devices]
        output = ops.reshape(output, (-1, lengths[0], *output.shape[3:]))
    return output


def _spans(blocking, query_metadata, key_metadata):
    metadata = BlockMetadata(blocking.rule, query_metadata, key_metadata, None)
    return block_spans(metadata, blocking.query_block, blocking.key_block)


def _with_positions(visibility, query_length, key_length):
    """Makes positions explicit, so that -1 can mask padding."""
    query, key = visibility.query_positions, visibility.key_positions
    return dataclasses.replace(
        visibility,
        query_positions=default_positions(query_length)
        if query is None
        else query,
        key_positions=default_positions(key_length) if key is None else key,
    )


def _padded(tensor, axis, devices, missing, fill):
    """Appends padding to the part of each device along an axis."""
    before, after = tensor.shape[:axis], tensor.shape[axis + 1 :]
    part = tensor.shape[axis] // devices
    tensor = ops.reshape(tensor, (*before, devices, part, *after))
    widths = [(0, 0)] * len(tensor.shape)
    widths[axis + 1] = (0, missing)
    tensor = pad(tensor, widths, fill)
    return ops.reshape(tensor, (*before, devices * (part + missing), *after))
