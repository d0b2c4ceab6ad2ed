"""Where a query wants to look, before it has seen a key."""

import keras
from keras import ops

from keras_attn.backend import apply_dense


class PredictedCentre(keras.layers.Layer):
    """Predicts a place as a fraction of the length.

        p / S = sigmoid(v . tanh(q W))

    Luong et al. 2015, sec. 3.2, eq. 9.

    Args:
        initializer: initializer of W and v.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).

    Returns:
        Float32 (B, T), in (0, 1).
    """

    def __init__(self, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.initializer = keras.initializers.get(initializer)

    def build(self, query_shape):
        """Creates W and v, as wide as the query."""
        width = query_shape[-1]
        self._query_dense = keras.layers.Dense(
            width,
            activation="tanh",
            use_bias=False,
            kernel_initializer=self.initializer.clone(),
            dtype=self.dtype_policy,
            name="query",
        )
        self._query_dense.supports_masking = True
        self._query_dense.build((None, None, width))
        self.scale = self.add_weight(
            shape=(width,), initializer=self.initializer.clone(), name="scale"
        )

    def call(self, query):
        """Returns the fraction, float32 (B, T)."""
        hidden = apply_dense(self._query_dense, query)
        # In float32: a hundredth of a long sequence is a token or more.
        hidden = ops.cast(hidden, "float32")
        scale = ops.cast(self.scale, "float32")
        return ops.sigmoid(ops.matmul(hidden, scale[:, None])[..., 0])
