"""Metrics of attention heads: entropy, distance, attention to padding."""

from typing import TYPE_CHECKING

import numpy as np

from keras_attn.explain.arguments import number_array
from keras_attn.explain.attention_map import attention_weights
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.explain.attention_map import AttentionMap


def head_entropy(weights: TensorLike) -> Tensor:
    """Returns the entropy of each head's attention weights.

        H = - sum_s w[t, s] log w[t, s], the mean over queries that are not
        fully masked

    It is 0 if each query attends to one key, and at most log S.

    Args:
        weights: `AttentionMap`, or float (B, N, T, S).

    Returns:
        Float32 (B, N), nats; 0 if all queries are fully masked.

    Raises:
        ValueError: weights of another shape, below 0 or not finite.

    Examples:
        >>> weights = np.full((1, 1, 2, 4), 0.25)
        >>> float(np.exp(keras_attn.explain.head_entropy(weights))[0, 0])
        4.0
    """
    weights = attention_weights("weights", weights).astype("float64")
    logs = np.log(np.where(weights > 0, weights, 1))
    return _over_queries(-(weights * logs).sum(axis=-1), weights)


def head_distance(weights: "AttentionMap") -> Tensor:
    """Returns the mean attention distance of each head, in tokens.

        d = sum_s w[t, s] |t - s|, the mean over queries that are not fully
        masked

    If there are more keys than queries, such as with a memory, the last key has
    the position of the last query.

    Args:
        weights: `AttentionMap` of self-attention, or float (B, N, T, S).

    Returns:
        Float32 (B, N), tokens; 0 if all queries are fully masked.

    Raises:
        ValueError: weights of another shape, below 0 or not finite.

    Examples:
        >>> weights = np.eye(4)[None, None][:, :, [0, 0, 1, 2]]
        >>> float(keras_attn.explain.head_distance(weights)[0, 0])
        0.75
    """
    weights = attention_weights("weights", weights).astype("float64")
    queries, keys = weights.shape[2:]
    positions = np.arange(queries)[:, None] + keys - queries
    distances = np.abs(positions - np.arange(keys))
    return _over_queries((weights * distances).sum(axis=-1), weights)


def padding_attention(weights: TensorLike, padding_mask: TensorLike) -> Tensor:
    """Returns the fraction of each head's attention weight on padding.

    It should be 0, as it is in keras_attn models.

    Args:
        weights: `AttentionMap`, or float (B, N, T, S).
        padding_mask: bool (B, S), True where there is a token.

    Returns:
        Float32 (B, N).

    Raises:
        ValueError: weights of another shape, below 0 or not finite, or a mask
            that does not fit.

    Examples:
        >>> weights = np.full((1, 2, 3, 4), 0.25)
        >>> mask = np.array([[True, True, True, False]])
        >>> keras_attn.explain.padding_attention(weights, mask).tolist()
        [[0.25, 0.25]]
    """
    weights = attention_weights("weights", weights).astype("float64")
    mask = number_array("padding_mask", padding_mask, "a bool array (B, S)")
    if not np.isin(mask, (0, 1)).all():
        raise ValueError(
            "`padding_mask` must be a bool array (B, S), True where there is a "
            f"token. Received: dtype {mask.dtype}"
        )
    mask = mask.astype(bool)
    expected = weights.shape[0], weights.shape[3]
    if mask.shape != expected:
        raise ValueError(
            f"`padding_mask` must have shape {expected}, (B, S). "
            f"Received: {mask.shape}"
        )
    on_padding = np.where(mask[:, None, None], 0, weights).sum(axis=-1)
    return _over_queries(on_padding, weights)


def _over_queries(numbers, weights):
    """Returns the mean over queries that are not fully masked, (B, N)."""
    valid = weights.sum(axis=-1) > 0
    count = np.maximum(valid.sum(axis=-1), 1)
    return (np.where(valid, numbers, 0).sum(axis=-1) / count).astype("float32")
