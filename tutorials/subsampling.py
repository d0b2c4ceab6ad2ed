"""A layer that makes a quarter as many vectors of frames."""

import keras
from keras import ops

_FACTOR = 4


@keras.saving.register_keras_serializable(package="tutorials")
class Subsampling(keras.layers.Layer):
    """Two convolutions over time and frequency, each with a stride of two.

        h = ReLU(Conv(x)),  g = ReLU(Conv(h)),  y = g W + b

    Kernels are three frames by three bands; so a vector of the output sees
    seven frames. Dong et al. 2018, https://ieeexplore.ieee.org/document/8462506.
    What stands behind the end of a sound is 0 in front of both convolutions:
    as much padding as there may be, the answer is the same.

    Args:
        width: int. D, the width of the output.
        channels: int. Channels of both convolutions.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        frames: float (B, F, bands).
        there: bool (B, F), True where there is a frame, none behind a gap.

    Returns:
        Float (B, S, D), and bool (B, S), where there is a vector; S = F / 4,
        rounded up.
    """

    def __init__(self, width, channels=32, **kwargs):
        super().__init__(**kwargs)
        self.width, self.channels = width, channels

    def build(self, frames_shape):
        """Creates the convolutions and the projection."""
        bands, inputs = frames_shape[-1], 1
        self._convolutions = []
        for number in range(2):
            layer = keras.layers.Conv2D(
                self.channels,
                3,
                strides=2,
                activation="relu",
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            layer.build((None, None, bands + 2, inputs))
            self._convolutions.append(layer)
            bands, inputs = -(-bands // 2), self.channels
        self._features = bands * inputs
        self._projection = keras.layers.Dense(
            self.width, dtype=self.dtype_policy, name="projection"
        )
        self._projection.build((None, None, self._features))

    def call(self, frames, there):
        """Applies the layer; the class docstring lists the arguments."""
        x = ops.expand_dims(frames, -1)
        for layer in self._convolutions:
            x = ops.where(there[:, :, None, None], x, 0)
            # Not padding="same", which at an even length would pad at the end
            # only: then vectors would stand elsewhere than at an odd one.
            x = layer(ops.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]))
            there = there[:, ::2]
        x = ops.reshape(x, (*ops.shape(x)[:2], self._features))
        return self._projection(x), there

    def compute_output_shape(self, frames_shape, there_shape=None):
        """Returns the shapes of the vectors and of where they are."""
        rows, length = frames_shape[:2]
        length = None if length is None else -(-length // _FACTOR)
        return (rows, length, self.width), (rows, length)

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config()
        return {**config, "width": self.width, "channels": self.channels}
