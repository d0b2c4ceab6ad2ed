"""A small network on query and key."""

from keras import ops

from keras_attn.layers.scores.score import Score, projected
from keras_attn.ops.scores import widened


class AdditiveScore(Score):
    """score = v . tanh(q W + k U) (Bahdanau et al. 2014, app. A.1.2).

    It is "concat" of Luong et al. 2015, sec. 3.1, with [W; U] as one
    matrix. No biases, as in the equations of both.

    Args:
        units: int >= 1. Width of the tanh; default that of the query.
        **kwargs: arguments of `Score`.
    """

    def __init__(self, units=None, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, query_shape, key_shape):
        """Creates W, U and v."""
        units = self.units or query_shape[-1]
        self._query_dense = self._dense(
            "query", query_shape[-1], units, use_bias=False
        )
        self._key_dense = self._dense(
            "key", key_shape[-1], units, use_bias=False
        )
        self.scale = self.add_weight(
            shape=(units,), initializer=self.initializer.clone(), name="scale"
        )

    def call(self, query, key, key_positions=None):
        """Returns the scores, float32 (B, T, S)."""
        query = projected(self._query_dense, query)
        key = projected(self._key_dense, key)
        # (B, T, S, units): the one place that needs so much memory.
        fit = ops.tanh(query[:, :, None] + key[:, None])
        return ops.matmul(fit, widened(self.scale)[:, None])[..., 0]
