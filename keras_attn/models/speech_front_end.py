"""Convolutions from the frames of recordings to vectors."""

from typing import Any

import keras
from keras import ops

from keras_attn.backend import pad, reduce_max
from keras_attn.typing import Nest, Tensor, TensorLike

_CONTEXT = 15  # vectors that the third convolution reads


class SpeechFrontEnd(keras.layers.Layer):
    """Computes one vector of four frames of a recording.

    `SpeechTransformer` documents the equations and the arguments.

    Args:
        num_mel_bins: int. M.
        filters: int. Filters of the two strided convolutions.
        hidden_dim: int. D.
        epsilon: float. Added to the variance in the layer norm.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        frames: float (B, F, M), padded with zeros.

    Returns:
        Float (B, S, D), S = ceil(F / 4), and bool (B, S), False at padding.
    """

    def __init__(
        self,
        num_mel_bins: int,
        filters: int,
        hidden_dim: int,
        epsilon: float,
        **kwargs: Any,
    ) -> None:
        # In half precision, small values would become padding.
        super().__init__(autocast=False, **kwargs)
        self.num_mel_bins = num_mel_bins
        self.filters = filters
        self.hidden_dim = hidden_dim
        options = {"data_format": "channels_last", "dtype": self.dtype_policy}
        options |= {"activation": "relu"}
        self._strided = [
            keras.layers.Conv2D(
                filters, 3, strides=2, name=f"strided_{i}", **options
            )
            for i in range(2)
        ]
        self._projection = keras.layers.Dense(
            hidden_dim, dtype=self.dtype_policy, name="projection"
        )
        self._norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.dtype_policy, name="context_norm"
        )
        self._context = keras.layers.Conv1D(
            hidden_dim, _CONTEXT, padding="same", name="context", **options
        )

    def build(self, frames_shape: Nest = None) -> None:
        """Creates all weights."""
        channels, bins = 1, self.num_mel_bins
        for convolution in self._strided:
            convolution.build((None, None, bins + 2, channels))
            channels, bins = self.filters, -(-bins // 2)
        self._projection.build((None, None, bins * channels))
        for layer in self._norm, self._context:
            layer.build((None, None, self.hidden_dim))
        self.built = True

    def call(self, frames: TensorLike) -> Tensor:
        """Computes vectors; the class docstring lists the arguments."""
        numbers = 1 + ops.arange(ops.shape(frames)[1], dtype="int32")
        ends = ops.where(ops.any(ops.cast(frames, "bool"), axis=-1), numbers, 1)
        mask = numbers <= reduce_max(ends, axis=1, keepdims=True)
        x = ops.cast(frames, self.compute_dtype)[..., None]
        for convolution in self._strided:
            # A convolution has a bias, so its padding is not 0.
            x = _masked(x, mask[..., None, None])
            x = convolution(pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]))
            mask = mask[:, ::2]
        shape = *ops.shape(x)[:2], x.shape[2] * x.shape[3]
        x = self._projection(ops.reshape(x, shape))
        return x + self._context(_masked(self._norm(x), mask[..., None])), mask


def _masked(x, mask):
    return ops.where(mask, x, ops.zeros_like(x))
