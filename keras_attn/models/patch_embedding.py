"""Embedding of the patches of an image."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.typing import Initializer, Nest, Tensor, TensorLike

_STDDEV = 0.02  # of learned tokens and positions, as published
# Of the cubic kernel of Keys 1981, sec. III, as in PyTorch.
_CUBIC = -0.75


class PatchEmbedding(keras.layers.Layer):
    """Embeds the patches of an image, after some learned tokens.

    `VisionTransformer` documents the equations and the arguments.

    Args:
        image_shape: tuple of int (H, W, C), of the table of positions.
        patch_size: int. P, pixels along each side of a patch.
        tokens: tuple of str. Names of the learned tokens before the patches.
        hidden_dim: int. D.
        initializer: initializer of all weights, or None: the layers' own.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        images: float (B, H', W', C), H' and W' multiples of P.

    Returns:
        Float (B, S, D), S the number of tokens and patches.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        patch_size: int,
        tokens: tuple[str, ...],
        hidden_dim: int,
        initializer: Initializer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.image_shape = image_shape
        self.patch_size = patch_size
        self.token_names = tokens
        self.hidden_dim = hidden_dim
        self._initializer = initializer
        arguments = {}
        if initializer is not None:
            arguments["kernel_initializer"] = initializer.clone()
        self._projection = keras.layers.Dense(
            hidden_dim, dtype=self.dtype_policy, name="projection", **arguments
        )

    @property
    def num_tokens(self) -> int:
        """The number of learned tokens, an int."""
        return len(self.token_names)

    @property
    def grid_size(self) -> tuple[int, int]:
        """Rows and columns of patches of an image of `image_shape`."""
        return self.grid_of(self.image_shape)

    def grid_of(self, image_shape: Any) -> tuple[int, int]:
        """Returns the rows and columns of patches of images (H, W, C)."""
        height, width, _ = image_shape
        return height // self.patch_size, width // self.patch_size

    def build(self, images_shape: Nest = None) -> None:
        """Creates all weights."""
        self._projection.build(
            (None, None, self.patch_size**2 * self.image_shape[-1])
        )
        rows, columns = self.grid_size
        self._tokens = [self._table(name, 1) for name in self.token_names]
        self._positions = self._table(
            "positions", self.num_tokens + rows * columns
        )
        self.built = True

    def call(self, images: TensorLike) -> Tensor:
        """Embeds images; the class docstring lists the arguments."""
        size = self.patch_size
        rows, columns = grid = self.grid_of(images.shape[1:])
        x = ops.cast(images, self.compute_dtype)
        x = ops.reshape(x, (-1, rows, size, columns, size, images.shape[-1]))
        x = ops.swapaxes(x, 2, 3)  # (B, rows, columns, P, P, C)
        x = ops.reshape(x, (-1, rows * columns, size**2 * images.shape[-1]))
        x = self._projection(x)
        # In this order: on TensorFlow, the sum of (1, D) and (1, 1, D) has two
        # axes only (as of Keras 3.15.1).
        nothing = ops.zeros_like(x[:, :1])
        x = ops.concatenate([*(nothing + t for t in self._tokens), x], axis=1)
        return x + self._positions_of(grid)

    def compute_output_shape(self, images_shape: Nest) -> Nest:
        """Returns the shape of the vectors."""
        rows, columns = self.grid_of(images_shape[1:])
        return (
            images_shape[0],
            self.num_tokens + rows * columns,
            self.hidden_dim,
        )

    def _table(self, name, length):
        start = self._initializer
        return self.add_weight(
            (length, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(stddev=_STDDEV)
            if start is None
            else start.clone(),
            name=name,
        )

    def _positions_of(self, grid):
        """Returns the positions of a grid, interpolated if it is another one.

        Float (1, tokens + patches, D).
        """
        if grid == self.grid_size:
            return self._positions[None]
        tokens = self._positions[: self.num_tokens]
        x = self._positions[self.num_tokens :]
        x = ops.reshape(x, (*self.grid_size, self.hidden_dim))
        weights = [
            ops.cast(bicubic_weights(*sizes), x.dtype)
            for sizes in zip(grid, self.grid_size, strict=True)
        ]
        x = ops.einsum("hi,wj,ijd->hwd", *weights, x)
        x = ops.reshape(x, (-1, self.hidden_dim))
        return ops.concatenate([tokens, x], axis=0)[None]


def bicubic_weights(size: int, old_size: int) -> np.ndarray:
    """Returns the matrix that resizes one axis with bicubic interpolation.

    As `torch.nn.functional.interpolate` with `mode="bicubic"`: Keras's
    `ops.image.resize` uses another kernel (as of Keras 3.15.1).

    Args:
        size: int. Length of the axis after the interpolation.
        old_size: int. Its length before.

    Returns:
        Float32 (size, old_size); each row sums to 1.

    Examples:
        >>> from keras_attn.models.patch_embedding import bicubic_weights
        >>> bicubic_weights(3, 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    # The centers of the new cells, in cells of the old axis.
    centers = (np.arange(size) + 0.5) * old_size / size - 0.5
    first = np.floor(centers).astype(int) - 1
    weights = np.zeros((size, old_size))
    for offset in range(4):
        distance = np.abs(centers - (first + offset))
        near = (_CUBIC + 2) * distance**3 - (_CUBIC + 3) * distance**2 + 1
        far = _CUBIC * (distance**3 - 5 * distance**2 + 8 * distance - 4)
        # Outside, the cell at the border.
        columns = np.clip(first + offset, 0, old_size - 1)
        np.add.at(
            weights,
            (np.arange(size), columns),
            np.where(distance <= 1, near, far),
        )
    return weights.astype("float32")
