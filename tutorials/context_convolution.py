"""A layer through which each vector of a sequence sees its neighbours."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tutorials")
class ContextConvolution(keras.layers.Layer):
    """A convolution over time, added to what it is given.

        y_t = x_t + ReLU(sum_k W_k LN(x)_(t + k) + b),  |k| <= reach // 2

    An encoder that begins with vectors of single moments has to find out by
    attention what stands beside what. Convolutions know that from the start,
    which makes it easier to learn (Mohamed et al. 2019,
    https://arxiv.org/abs/1904.11660). What stands behind the end of a sequence
    is 0, as is what stands in front of it.

    Args:
        reach: int, odd. Vectors that a vector of the output sees.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        x: float (B, S, D).
        there: bool (B, S), where there is a vector.

    Returns:
        Float (B, S, D).

    Raises:
        ValueError: `reach` is no odd number from 1.
    """

    def __init__(self, reach=15, **kwargs):
        super().__init__(**kwargs)
        if type(reach) is not int or reach < 1 or reach % 2 == 0:
            raise ValueError(
                f"`reach` must be an odd number from 1. Received: {reach!r}"
            )
        self.reach = reach

    def build(self, x_shape):
        """Creates the norm and the convolution."""
        self._norm = keras.layers.LayerNormalization(
            dtype=self.dtype_policy, name="norm"
        )
        self._convolution = keras.layers.Conv1D(
            x_shape[-1],
            self.reach,
            padding="same",
            activation="relu",
            dtype=self.dtype_policy,
            name="convolution",
        )
        for layer in (self._norm, self._convolution):
            layer.build((None, None, x_shape[-1]))

    def call(self, x, there):
        """Applies the layer; the class docstring lists the arguments."""
        y = ops.where(there[..., None], self._norm(x), 0)
        return x + self._convolution(y)

    def compute_output_shape(self, x_shape, there_shape=None):
        """Returns the shape of the output, that of the input."""
        return x_shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "reach": self.reach}
