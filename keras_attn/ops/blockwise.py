"""Blockwise attention, in memory linear in the sequence length."""

import functools
from typing import TYPE_CHECKING, Any

from keras_attn.backend import (
    Blocking,
    blockwise_attention,
    kept_seed,
    pad,
)
from keras_attn.ops.block_rule import (
    block_metadata,
    block_spans,
    static_block_spans,
)
from keras_attn.ops.position_bias import PositionBias, four_axes
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.visibility import Visibility


# Large blocks are faster, but with a narrow window small blocks skip more.
BLOCK = 512
_SMALLEST = 128


def attend_blockwise(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    visibility: "Visibility",
    bias: TensorLike | None,
    scale: float,
    dropout: Any,
) -> Tensor:
    """Computes `attend` block by block.

    Args:
        query: float (B, T, N, H), T static.
        key: float (B, S, K, H), S static.
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
    length = query.shape[1]
    query_block, query_pad = block_and_pad(length, visibility.window)
    key_block, key_pad = block_and_pad(key.shape[1], visibility.window)
    metadata = block_metadata(
        visibility, length, key.shape[1], query_pad, key_pad
    )
    kind, bias = kind_of_bias(bias)
    if kind == "tensor":
        bias = _padded(bias, (2, query_pad), (3, key_pad))
    blocking = Blocking(
        query_block,
        key_block,
        heads=query.shape[2],
        key_heads=key.shape[2],
        scale=float(scale),
        rule=metadata.rule,
        bias=kind,
        rate=0.0 if dropout is None else dropout.rate,
        spans=static_block_spans(
            visibility,
            length + query_pad,
            key.shape[1] + key_pad,
            query_block,
            key_block,
        ),
    )
    output = blockwise_attention(
        blocking,
        _padded(query, (1, query_pad)),
        _padded(key, (1, key_pad)),
        _padded(value, (1, key_pad)),
        bias=bias,
        query_metadata=metadata.query,
        key_metadata=metadata.key,
        spans=functools.partial(block_spans, metadata, query_block, key_block),
        mask=metadata.mask,
        seed=None if dropout is None else kept_seed(dropout.seed),
    )
    return output[:, :length] if query_pad else output


def _hashable(function):
    try:
        hash(function)
    except TypeError:
        raise ValueError(
            "`bias.function` must be hashable: the blockwise kernel compiles a "
            f"program for each. Received: {function!r}"
        ) from None
    return function


def kind_of_bias(bias: TensorLike | None) -> tuple[Any, Any]:
    """Splits a bias into that of a `Blocking` and that of its operands.

    Args:
        bias: float broadcastable to (B, N, T, S), a `PositionBias`, or None.

    Returns:
        `"tensor"`, a hashable callable on metadata, or None; and float, rank 4,
        the parameters of the callable, or None.

    Raises:
        ValueError: if the function of a `PositionBias` is not hashable.
    """
    if bias is None:
        return None, None
    if isinstance(bias, PositionBias):
        return _OfPositions(_hashable(bias.function)), bias.parameters
    return "tensor", four_axes(bias)


def block_and_pad(length: int, window: int | None = None) -> tuple[int, int]:
    """Chooses the size of a block.

    Args:
        length: int. Number of queries or keys.
        window: int, or None. The window of the visibility.

    Returns:
        Int, the size, and int, the padding that fills the last block.
    """
    most = BLOCK
    if window is not None:
        most = min(BLOCK, max(_SMALLEST, window))
    count = -(-length // most)
    size = -(-length // count)
    return size, count * size - length


def _padded(tensor, *pads):
    widths = [(0, 0)] * len(tensor.shape)
    for axis, missing in pads:
        if tensor.shape[axis] != 1 or axis == 1:
            widths[axis] = (0, missing)
    if not any(after for _, after in widths):
        return tensor
    return pad(tensor, widths)


class _OfPositions:
    """Wraps a function of positions as one of metadata, keeping equality."""

    def __init__(self, function):
        self.function = function

    def __call__(self, parameters, query_metadata, key_metadata):
        return self.function(parameters, query_metadata[0], key_metadata[0])

    def __eq__(self, other):
        return type(other) is type(self) and self.function == other.function

    def __hash__(self):
        return hash(self.function)
