"""The angle between query and key, sharpened."""

from keras import ops

from keras_attn.layers.scores.score import (
    Score,
    check_equal_widths,
    dot_scores,
    projected,
)
from keras_attn.ops.scores import widened


class CosineScore(Score):
    """score = b q . k / (|q| |k|), b = softplus(q w + c).

    Content addressing of Graves et al. 2014, sec. 3.3.1, eq. 5 and 6. Their
    key strength b > 0 comes from the controller with the query; here it is
    computed from the query. Softplus makes it positive. A vector of zeros has
    similarity 0.
    """

    def build(self, query_shape, key_shape):
        """Creates w and c."""
        check_equal_widths("cosine", query_shape, key_shape)
        self._strength_dense = self._dense(
            "strength", query_shape[-1], 1, activation="softplus"
        )

    def call(self, query, key, key_positions=None):
        """Returns the scores, float32 (B, T, S)."""
        strength = projected(self._strength_dense, query)
        return strength * dot_scores(_unit(query), _unit(key))


def _unit(x):
    x = widened(x)
    square = ops.sum(ops.square(x), axis=-1, keepdims=True)
    # Twice, or the gradient at zeros would be 0 x infinity.
    there = square > 0
    return ops.where(there, x * ops.rsqrt(ops.where(there, square, 1)), 0)
