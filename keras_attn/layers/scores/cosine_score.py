"""Cosine similarity score with a learned strength."""

from keras import ops

from keras_attn.layers.scores.score import (
    Score,
    check_equal_widths,
    dot_scores,
    projected,
)
from keras_attn.ops.scores import widened
from keras_attn.typing import Shape, Tensor, TensorLike


class CosineScore(Score):
    """score = b q . k / (|q| |k|), b = softplus(q w + c).

    Content-based addressing of Graves et al. 2014, sec. 3.3.1, eq. 5 and 6. In
    the paper, the controller emits the key strength b > 0 along with the query;
    here it is computed from the query, and softplus makes it positive. The
    similarity to a zero vector is 0.
    """

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Creates w and c."""
        check_equal_widths("cosine", query_shape, key_shape)
        self._strength_dense = self._dense(
            "strength", query_shape[-1], 1, activation="softplus"
        )

    def call(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Tensor:
        """Returns the scores, float32 (B, T, S)."""
        strength = projected(self._strength_dense, query)
        return strength * dot_scores(_unit(query), _unit(key))


def _unit(x):
    x = widened(x)
    square = ops.sum(ops.square(x), axis=-1, keepdims=True)
    # The inner `where` prevents a gradient of 0 * infinity at zero vectors.
    nonzero = square > 0
    return ops.where(nonzero, x * ops.rsqrt(ops.where(nonzero, square, 1)), 0)
