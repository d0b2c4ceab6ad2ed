"""Predicted window center of local attention."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.scores.score import built_dense, projected
from keras_attn.ops.scores import widened
from keras_attn.typing import Initializer, Shape, Tensor, TensorLike


class PredictedCenter(keras.layers.Layer):
    """Predicts a position as a fraction of the sequence length.

        p / S = sigmoid(v . tanh(q W))

    Luong et al. 2015, sec. 3.2, eq. 9.

    Args:
        initializer: initializer of W and v.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).

    Returns:
        Float (B, T), in (0, 1), at least float32: half-precision rounding
        errors would exceed a token in long sequences.
    """

    def __init__(
        self, initializer: Initializer = "glorot_uniform", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.initializer: Initializer = keras.initializers.get(initializer)

    def build(self, query_shape: Shape) -> None:
        """Creates W and v, of the width of the query."""
        width = query_shape[-1]
        self._query_dense = built_dense(
            self, "query", width, width, activation="tanh", use_bias=False
        )
        self.scale: keras.Variable = self.add_weight(
            shape=(width,), initializer=self.initializer.clone(), name="scale"
        )

    def call(self, query: TensorLike) -> Tensor:
        """Returns the fractions, (B, T)."""
        hidden = projected(self._query_dense, query)
        return ops.sigmoid(
            ops.matmul(hidden, widened(self.scale)[:, None])[..., 0]
        )
