"""A score that the caller brings: a layer, or a callable."""

import keras

from keras_attn import checks
from keras_attn.ops.scores import widened


class GivenScore:
    """Holds what was given to what `ScoredAttention` expects of a score.

    Not a layer: a layer that was given is already one of the attention's.

    Args:
        function: takes query (B, T, D) and key (B, S, D'), returns (B, T, S).
        dtype: of query and key.
    """

    def __init__(self, function, dtype):
        self.function = function
        self.dtype = dtype

    def build(self, query_shape, key_shape):
        """Builds a layer."""
        if isinstance(self.function, keras.layers.Layer):
            # Its first call may be too late: a symbolic one calls no layer.
            self.function(
                keras.KerasTensor(query_shape, dtype=self.dtype),
                keras.KerasTensor(key_shape, dtype=self.dtype),
            )

    def __call__(self, query, key, key_positions=None):
        """Returns the scores, float32 (B, T, S).

        Raises:
            ValueError: they have another shape.
        """
        scores = self.function(query, key)
        expected = query.shape[0], query.shape[1], key.shape[1]
        if not checks.fits(tuple(scores.shape), expected):
            raise ValueError(
                "`score` must return a score for each query and key, "
                f"{expected}. Received: scores of shape {tuple(scores.shape)}"
            )
        return widened(scores)
