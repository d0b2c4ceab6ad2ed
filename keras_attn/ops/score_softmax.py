"""Masked softmax of scores."""

from keras import ops

from keras_attn.typing import Tensor, TensorLike

_HIDDEN = -1e30  # finite in float32, in which scores are computed


def hidden(scores: TensorLike, mask: TensorLike | None) -> Tensor:
    """Replaces the scores of masked keys by a large negative number.

    The number is not -inf, because the softmax of a row of -inf is NaN. The
    weights of a fully masked row are uniform instead.

    Args:
        scores: float32 (..., T, S).
        mask: bool broadcastable to the scores, or None: nothing is masked.

    Returns:
        Float32 (..., T, S).

    Examples:
        >>> from keras_attn.ops.score_softmax import hidden
        >>> mask = keras.ops.convert_to_tensor([[True, False]])
        >>> scores = hidden(keras.ops.ones((1, 2)), mask)
        >>> float(scores[0, 0]), float(scores[0, 1]) < -1e29
        (1.0, True)
    """
    return scores if mask is None else ops.where(mask, scores, _HIDDEN)


def softmax(scores: TensorLike) -> Tensor:
    """Computes the softmax over the last axis.

    Args:
        scores: float32 (..., T, S).

    Returns:
        Float32 (..., T, S).

    Examples:
        >>> from keras_attn.ops.score_softmax import softmax
        >>> float(softmax(keras.ops.ones((1, 2)))[0, 0])
        0.5
    """
    # Keras warns about a softmax over an axis of size 1, which is valid here
    # (as of Keras 3.15.1).
    if scores.shape[-1] == 1:
        return ops.ones_like(scores)
    return ops.softmax(scores, axis=-1)


def softmax_with_sinks(scores: TensorLike, sinks: TensorLike) -> Tensor:
    """Computes the softmax over the keys and one more score per head.

    Args:
        scores: float32 (B, N, T, S).
        sinks: float (N,).

    Returns:
        Float32 (B, N, T, S); rows sum to less than 1.

    Examples:
        >>> from keras_attn.ops.score_softmax import softmax_with_sinks
        >>> scores = keras.ops.ones((1, 1, 1, 1))
        >>> float(softmax_with_sinks(scores, keras.ops.ones((1,)))[0, 0, 0, 0])
        0.5
    """
    sink = ops.cast(sinks, scores.dtype)[None, :, None, None]
    sink = ops.broadcast_to(sink, (*ops.shape(scores)[:3], 1))
    weights = ops.softmax(ops.concatenate([scores, sink], axis=-1), axis=-1)
    return weights[..., :-1]
