"""Attention scores before the softmax."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import batched_matmul
from keras_attn.typing import Tensor, TensorLike


def scaled_dot_scores(
    query: TensorLike, key: TensorLike, scale: float | None = None
) -> Tensor:
    """Computes scale * q . k for every query, key and head, in float32.

        score[b, n, t, s] = scale * sum_h query[b, t, n, h] key[b, s, n', h]

    with scale = 1 / sqrt(H) by default (Vaswani et al. 2017, sec. 3.2.1,
    https://arxiv.org/abs/1706.03762). With K < N key heads, n' = n // (N / K):
    N / K adjacent query heads share one key head (Ainslie et al. 2023,
    https://arxiv.org/abs/2305.13245).

    Args:
        query: float (B, T, N, H).
        key: float (B, S, K, H), K dividing N.
        scale: float. Default 1 / sqrt(H).

    Returns:
        Float (B, N, T, S), at least float32: in half precision a score of a few
        hundred would have lost its fractional part.

    Examples:
        >>> q = keras.ops.ones((1, 2, 1, 64))
        >>> k = keras.ops.ones((1, 3, 1, 64))
        >>> scores = keras_attn.ops.scaled_dot_scores(q, k)
        >>> tuple(scores.shape), float(scores[0, 0, 0, 0])
        ((1, 1, 2, 3), 8.0)
    """
    for name, x in (("query", query), ("key", key)):
        checks.rank(name, checks.floats(name, checks.tensor(name, x)), 4)
    if scale is not None:
        checks.real("scale", scale)
    if not checks.fits(query.shape[:1], key.shape[:1]):
        raise ValueError(
            "`query` and `key` must have the same batch. "
            f"Received: {tuple(query.shape)} and {tuple(key.shape)}"
        )
    check_heads(query, key)
    return head_scores(query, key, scale)


def check_heads(query: TensorLike, key: TensorLike) -> None:
    """Raises ValueError unless keys have the width and heads of queries."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "`query` and `key` must have the same width. Received: "
            f"{query.shape[-1]} and {key.shape[-1]}"
        )
    if query.shape[2] % key.shape[2]:
        raise ValueError(
            "The number of heads of `query` must be a multiple of that of "
            f"`key`. Received: {query.shape[2]} and {key.shape[2]}"
        )


def head_scores(
    query: TensorLike, key: TensorLike, scale: float | None = None
) -> Tensor:
    """Computes `scaled_dot_scores` of tensors that are known to fit."""
    heads, width = query.shape[2:]
    key_heads = key.shape[2]
    scale = width**-0.5 if scale is None else scale
    query, key = widened(query), widened(key)
    # Scaling the query takes T x H multiplications, scaling scores T x S.
    query = query * ops.cast(scale, query.dtype)
    # Not an einsum: on a CPU, XLA's takes up to twice as long between
    # projections, and it transposes the whole cache at each decoding step
    # (as of JAX 0.10.2 and TensorFlow 2.21.0).
    query = ops.transpose(query, (0, 2, 1, 3))
    key = ops.transpose(key, (0, 2, 3, 1))
    if heads == key_heads:
        return batched_matmul(query, key)
    batch, _, length, _ = ops.shape(query)
    together = heads // key_heads * length
    query = ops.reshape(query, (batch, key_heads, together, width))
    scores = batched_matmul(query, key)
    return ops.reshape(scores, (batch, heads, length, ops.shape(key)[3]))


def widened(x: TensorLike) -> Tensor:
    """Casts to float32, except for float64.

    Args:
        x: float, any shape.

    Returns:
        Float32 or float64, of that shape.

    Examples:
        >>> from keras_attn.ops.scores import widened
        >>> keras.backend.standardize_dtype(
        ...     widened(keras.ops.ones(2, "bfloat16")).dtype)
        'float32'
    """
    if keras.backend.standardize_dtype(x.dtype) == "float64":
        return x
    return ops.cast(x, "float32")
