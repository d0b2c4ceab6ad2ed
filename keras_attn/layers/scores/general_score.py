"""Bilinear (general) score."""

from keras_attn.backend import apply_dense
from keras_attn.layers.scores.score import Score, dot_scores
from keras_attn.typing import Shape, Tensor, TensorLike


class GeneralScore(Score):
    """score = q W k (Luong et al. 2015, sec. 3.1, "general")."""

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Creates W (D, D')."""
        self._query_dense = self._dense(
            "query", query_shape[-1], key_shape[-1], use_bias=False
        )

    def call(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Tensor:
        """Returns the scores, float32 (B, T, S)."""
        return dot_scores(apply_dense(self._query_dense, query), key)
