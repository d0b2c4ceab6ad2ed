"""Dot-product score, unscaled and scaled."""

from keras_attn.layers.scores.score import (
    Score,
    check_equal_widths,
    dot_scores,
)
from keras_attn.typing import Shape, Tensor, TensorLike


class DotScore(Score):
    """score = q . k (Luong et al. 2015, sec. 3.1, "dot")."""

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Checks the widths; there are no weights."""
        check_equal_widths("dot", query_shape, key_shape)

    def call(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Tensor:
        """Returns the scores, float32 (B, T, S)."""
        return dot_scores(query, key)


class ScaledDotScore(Score):
    """score = q . k / sqrt(D) (Vaswani et al. 2017, sec. 3.2.1, eq. 1)."""

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Checks the widths; there are no weights."""
        check_equal_widths("scaled_dot", query_shape, key_shape)

    def call(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Tensor:
        """Returns the scores, float32 (B, T, S)."""
        return dot_scores(query, key, scale=None)
