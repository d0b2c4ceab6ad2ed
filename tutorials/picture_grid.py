"""A picture as a grid of vectors, each of which knows what is around it."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tutorials")
class PictureGrid(keras.layers.Layer):
    """Makes vectors of the places of a picture, by convolutions.

        local = Conv(Conv_2(Conv_2(Conv(picture))))       4 x 4 pixels a place
        around = Conv_d4(Conv_d2(Conv(local)))            the places near it
        grid = LayerNorm([local; around] W + P)

    with 3 x 3 kernels, strides of 2 where there is a 2 and dilation where there
    is a d, ReLU and layer normalisation behind each, and a vector P of each
    place, which is learned. The annotation vectors of Xu et al. 2015, sec.
    3.1.1, https://arxiv.org/abs/1502.03044, whose convolutions were trained
    before, on ImageNet.

    Args:
        features: int. D.
        channels: int. Channels of the first convolution; the others have twice
            and four times as many.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        pictures: (B, H, W, C), 0 to 255.

    Returns:
        Float (B, S, D), row by row; S = ceil(H / 4) ceil(W / 4).
    """

    def __init__(self, features, channels=16, **kwargs):
        super().__init__(**kwargs)
        self.features, self.channels = features, channels
        self._local = [
            self._convolution("local_0", channels),
            self._convolution("local_1", 2 * channels, strides=2),
            self._convolution("local_2", 4 * channels, strides=2),
            self._convolution("local_3", 4 * channels),
        ]
        self._around = [
            self._convolution(f"around_{i}", 4 * channels, dilation_rate=2**i)
            for i in range(3)
        ]
        self._norms = [
            keras.layers.LayerNormalization(
                dtype=self.dtype_policy, name=f"norm_{i}"
            )
            for i in range(8)
        ]
        self._mixing = keras.layers.Dense(
            features, dtype=self.dtype_policy, name="mixing"
        )

    def build(self, shape):
        """Creates all weights."""
        for layer, norm in zip(
            self._local + self._around, self._norms, strict=False
        ):
            layer.build(shape)
            shape = layer.compute_output_shape(shape)
            norm.build(shape)
        self.grid = shape[1:3]
        self._mixing.build((*shape[:-1], 8 * self.channels))
        self._norms[-1].build((None, None, self.features))
        self._places = self.add_weight(
            (self.grid[0] * self.grid[1], self.features),
            initializer=keras.initializers.RandomNormal(stddev=0.5),
            name="places",
        )

    def call(self, pictures):
        """Makes the vectors."""
        local = self.local(pictures)
        around = _through(local, self._around, self._norms[4:])
        x = self._mixing(ops.concatenate([local, around], axis=-1))
        x = ops.reshape(x, (-1, self.grid[0] * self.grid[1], self.features))
        return self._norms[-1](x + ops.cast(self._places, x.dtype))

    def local(self, pictures):
        """Returns what each place knows of itself.

        Args:
            pictures: (B, H, W, C), 0 to 255.

        Returns:
            Float (B, ceil(H / 4), ceil(W / 4), 4 `channels`).
        """
        x = ops.cast(pictures, self.compute_dtype) / 127.5 - 1
        return _through(x, self._local, self._norms)

    def compute_output_shape(self, shape):
        """Returns the shape of the vectors."""
        height, width = (-(-size // 4) for size in shape[1:3])
        return shape[0], height * width, self.features

    def get_config(self):
        """Returns the constructor's arguments."""
        sizes = {"features": self.features, "channels": self.channels}
        return super().get_config() | sizes

    def _convolution(self, name, filters, **kwargs):
        return keras.layers.Conv2D(
            filters,
            3,
            padding="same",
            dtype=self.dtype_policy,
            name=name,
            **kwargs,
        )


def _through(x, layers, norms):
    for layer, norm in zip(layers, norms, strict=False):
        x = ops.relu(norm(layer(x)))
    return x
