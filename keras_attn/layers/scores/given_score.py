"""User-defined score: a layer or a callable."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn import checks
from keras_attn.ops.scores import widened
from keras_attn.typing import Shape, TensorLike


class GivenScore:
    """Adapts a user-defined score to the interface of `Score`.

    Not a layer itself: the attention layer already tracks a score layer.

    Args:
        function: layer or callable that takes query (B, T, D) and key
            (B, S, D') and returns (B, T, S).
        dtype: str. Dtype of query and key.
    """

    def __init__(self, function: Callable[..., Any], dtype: str) -> None:
        self.function = function
        self.dtype = dtype

    def build(self, query_shape: Shape, key_shape: Shape) -> None:
        """Builds the score if it is a layer."""
        if isinstance(self.function, keras.layers.Layer):
            # Not at the first call, because symbolic calls of the attention
            # layer do not call the score.
            self.function(
                keras.KerasTensor(query_shape, dtype=self.dtype),
                keras.KerasTensor(key_shape, dtype=self.dtype),
            )

    def __call__(
        self,
        query: TensorLike,
        key: TensorLike,
        key_positions: TensorLike | None = None,
    ) -> Any:
        """Returns the scores, float32 (B, T, S).

        Raises:
            ValueError: the scores have another shape.
        """
        scores = self.function(query, key)
        expected = query.shape[0], query.shape[1], key.shape[1]
        if not checks.fits(tuple(scores.shape), expected):
            raise ValueError(
                "`score` must return one score per query and key, "
                f"{expected}. Received: scores of shape {tuple(scores.shape)}"
            )
        return widened(scores)
