"""Additive (concat) score."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.scores.score import Score, projected
from keras_attn.ops.scores import widened
from keras_attn.typing import Shape, Tensor, TensorLike


class AdditiveScore(Score):
    """score = v . tanh(q W + k U) (Bahdanau et al. 2014, app. A.1.2).

    This is "concat" of Luong et al. 2015, sec. 3.1, where [W; U] is one matrix.
    No biases, as in both papers.

    Args:
        units: int >= 1. Width of the tanh layer. Default: that of the query.
        **kwargs: arguments of `Score`.
    """

    def __init__(self, units: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Creates W, U and v."""
        units = self.units or query_shape[-1]
        self._query_dense = self._dense(
            "query", query_shape[-1], units, use_bias=False
        )
        self._key_dense = self._dense(
            "key", key_shape[-1], units, use_bias=False
        )
        self.scale: keras.Variable = self.add_weight(
            shape=(units,), initializer=self.initializer.clone(), name="scale"
        )

    def call(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Tensor:
        """Returns the scores, float32 (B, T, S)."""
        query = projected(self._query_dense, query)
        key = projected(self._key_dense, key)
        # (B, T, S, units): the largest tensor of the layer.
        fit = ops.tanh(query[:, :, None] + key[:, None])
        return ops.matmul(fit, widened(self.scale)[:, None])[..., 0]
