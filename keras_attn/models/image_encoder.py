"""Convolutional encoder of images."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.typing import Nest, Tensor, TensorLike

STRIDE = 4  # pixels of a cell of the grid, along each axis


class ImageEncoder(keras.layers.Layer):
    """Computes a grid of annotation vectors of an image.

    `ImageCaptioner` documents the equations and the arguments.

    Args:
        image_shape: tuple of int (H, W, C).
        hidden_dim: int. D.
        filters: int. Filters of the first convolution.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        images: (B, H, W, C), values in [0, 255].

    Returns:
        Float (B, S, D), the cells of the grid row by row.
    """

    def __init__(
        self,
        image_shape: Sequence[int],
        hidden_dim: int,
        filters: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.image_shape = image_shape
        self.hidden_dim = hidden_dim
        self.grid_size: tuple[int, ...] = tuple(
            -(-size // STRIDE) for size in image_shape[:2]
        )
        self._local = [
            self._convolution(f"local_{i}", factor * filters, strides=strides)
            for i, (factor, strides) in enumerate(
                ((1, 1), (2, 2), (4, 2), (4, 1))
            )
        ]
        self._context = [
            self._convolution(f"context_{i}", 4 * filters, dilation_rate=2**i)
            for i in range(3)
        ]
        self._dense = keras.layers.Dense(
            hidden_dim, dtype=self.dtype_policy, name="projection"
        )
        self._norm = keras.layers.LayerNormalization(
            dtype=self.dtype_policy, name="norm"
        )

    def build(self, images_shape: Nest = None) -> None:
        """Creates all weights."""
        shape = (None, *self.image_shape)
        for convolution, norm in self._local + self._context:
            convolution.build(shape)
            shape = convolution.compute_output_shape(shape)
            norm.build(shape)
        self._dense.build((*shape[:-1], 2 * shape[-1]))
        self._norm.build((None, None, self.hidden_dim))
        rows, columns = self.grid_size
        self._positions = self.add_weight(
            (rows * columns, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(stddev=0.5),
            name="position_embedding",
        )
        self.built = True

    def call(self, images: TensorLike) -> Tensor:
        """Encodes images; the class docstring lists the arguments."""
        x = ops.cast(images, self.compute_dtype) / 127.5 - 1
        local = _apply(self._local, x)
        context = _apply(self._context, local)
        x = self._dense(ops.concatenate([local, context], axis=-1))
        x = ops.reshape(x, (-1, *self._positions.shape))
        return self._norm(x + ops.cast(self._positions, x.dtype))

    def compute_output_shape(self, images_shape: Nest) -> Nest:
        """Returns the shape of the annotation vectors."""
        rows, columns = self.grid_size
        return images_shape[0], rows * columns, self.hidden_dim

    def _convolution(self, name, filters, **kwargs):
        """Returns a convolution and its normalization."""
        dtype = self.dtype_policy
        convolution = keras.layers.Conv2D(
            filters,
            3,
            padding="same",
            data_format="channels_last",
            dtype=dtype,
            name=name,
            **kwargs,
        )
        norm = keras.layers.LayerNormalization(dtype=dtype, name=f"{name}_norm")
        return convolution, norm


def _apply(layers, x):
    for convolution, norm in layers:
        x = ops.relu(norm(convolution(x)))
    return x
