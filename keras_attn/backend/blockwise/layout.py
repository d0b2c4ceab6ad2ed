"""Reshapes per-head tensors into contiguous blocks, and back."""

from keras import ops

from keras_attn.typing import Tensor, TensorLike


def query_blocks(tensor: TensorLike, size: int, key_heads: int) -> Tensor:
    """Splits (B, T, N, H) into (T / t, B * K, G * t, H).

    Args:
        tensor: float (B, T, N, H), T a multiple of t.
        size: int. t, queries in a block.
        key_heads: int. K, dividing N.

    Returns:
        Float (T / t, B * K, G * t, H) with G = N / K.
    """
    _, length, heads, width = tensor.shape
    groups = heads // key_heads
    tensor = ops.reshape(
        tensor, (-1, length // size, size, key_heads, groups, width)
    )
    tensor = ops.transpose(tensor, (1, 0, 3, 4, 2, 5))
    return ops.reshape(tensor, (length // size, -1, groups * size, width))


def key_blocks(tensor: TensorLike, size: int) -> Tensor:
    """Splits (B, S, K, H) into (S / s, B * K, s, H).

    Args:
        tensor: float (B, S, K, H), S a multiple of s.
        size: int. s, keys in a block.

    Returns:
        Float (S / s, B * K, s, H).
    """
    return query_blocks(tensor, size, tensor.shape[2])


def from_query_blocks(tensor: TensorLike, size: int, key_heads: int) -> Tensor:
    """Inverts `query_blocks`.

    Args:
        tensor: float (T / t, B * K, G * t, W).
        size: int. t, queries in a block.
        key_heads: int. K.

    Returns:
        Float (B, T, K * G, W).
    """
    blocks, _, rows, width = tensor.shape
    groups = rows // size
    tensor = ops.reshape(tensor, (blocks, -1, key_heads, groups, size, width))
    tensor = ops.transpose(tensor, (1, 0, 4, 2, 3, 5))
    return ops.reshape(tensor, (-1, blocks * size, key_heads * groups, width))


def metadata_blocks(metadata: TensorLike, size: int) -> Tensor:
    """Splits (F, B, T) into (T / t, F, B, t).

    Args:
        metadata: int32 (F, B, T), T a multiple of t.
        size: int. t.

    Returns:
        Int32 (T / t, F, B, t).
    """
    number, _, length = metadata.shape
    metadata = ops.reshape(metadata, (number, -1, length // size, size))
    return ops.transpose(metadata, (2, 0, 1, 3))
