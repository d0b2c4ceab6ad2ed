"""From scores to weights: the softmax over the keys that are visible."""

from keras import ops

_HIDDEN = -1e30  # finite in float32, in which scores are computed


def hidden(scores, mask):
    """Makes the scores of hidden keys less than any other.

    Not -inf: a row of nothing but -inf has no softmax. Such a row comes out
    uniform.

    Args:
        scores: float32 (..., T, S).
        mask: bool broadcastable to the scores, or None: nothing is hidden.

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


def softmax(scores):
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
    # Of one key Keras warns that its softmax is 1; here that is no mistake.
    if scores.shape[-1] == 1:
        return ops.ones_like(scores)
    return ops.softmax(scores, axis=-1)
