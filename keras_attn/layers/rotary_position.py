"""Rotary position embeddings (RoPE)."""

from typing import Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops.sinusoids import sine_and_cosine
from keras_attn.typing import Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class RotaryPosition(AttentionPosition):
    """Rotates each pair of features by an angle proportional to the position.

        (x_a, x_b) -> (x_a cos(p w_i) - x_b sin(p w_i),
                       x_b cos(p w_i) + x_a sin(p w_i))
        w_i = max_wavelength^(-2i / R), 0 <= i < R / 2

    Su et al. 2021, sec. 3.2.2, eq. 14 and 15,
    https://arxiv.org/abs/2104.09864; R is their d. The dot product of a rotated
    query and a rotated key depends on their positions only by the distance.

    Pair i is (a, b) = (i, i + R / 2) in the layout `"halves"` (Llama, GPT-NeoX)
    and (2i, 2i + 1) in the layout `"interleaved"` (the paper, GPT-J). Angles
    are exact up to position 131,071, the maximum: larger positions raise, or
    give NaN in a compiled function. The rotation is computed in float32, in
    half precision too.

    Args:
        max_wavelength: float > 0. Wavelengths range from 2 pi to 2 pi
            `max_wavelength` tokens.
        rotary_dim: int, even. R, the first features of each head, which are
            rotated. Default None: all.
        layout: `"halves"` or `"interleaved"`.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: an argument is out of range, or `rotary_dim` is odd or
            exceeds the `key_dim` of the attention layer.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=2, key_dim=4, causal=True,
        ...     attention_position=keras_attn.layers.RotaryPosition())
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> tuple(layer(x, x).shape)
        (2, 5, 8)
    """

    def __init__(
        self,
        max_wavelength: float = 10000.0,
        rotary_dim: int | None = None,
        layout: str = "halves",
        **kwargs: Any,
    ) -> None:
        number = isinstance(max_wavelength, (int, float)) and not isinstance(
            max_wavelength, bool
        )
        if not number or not 0 < max_wavelength < float("inf"):
            raise ValueError(
                "`max_wavelength` must be a number > 0. Received: "
                f"max_wavelength={max_wavelength!r}"
            )
        if rotary_dim is not None:
            checks.positive_int("rotary_dim", rotary_dim)
            _check_even("rotary_dim", rotary_dim)
        checks.choice("layout", layout, ("halves", "interleaved"))
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength
        self.rotary_dim = rotary_dim
        self.layout = layout

    def check(self, num_heads: int, key_dim: int) -> None:
        """Raises ValueError if the heads are too narrow or of odd width."""
        if self.rotary_dim is None:
            _check_even("key_dim", key_dim)
        elif self.rotary_dim > key_dim:
            raise ValueError(
                "`rotary_dim` must be at most the `key_dim` of the attention "
                f"layer, {key_dim}. Received: rotary_dim={self.rotary_dim}"
            )

    def rotate(self, x: TensorLike, positions: TensorLike) -> Tensor:
        """Rotates queries or keys (B, T, N, H) at `positions` (B, T)."""
        rotary_dim = x.shape[-1] if self.rotary_dim is None else self.rotary_dim
        sine, cosine = (
            wave[:, :, None]
            for wave in sine_and_cosine(
                positions, rotary_dim, self.max_wavelength
            )
        )
        dtype = keras.backend.result_type(x.dtype, "float32")
        sine, cosine = ops.cast(sine, dtype), ops.cast(cosine, dtype)
        pairs = ops.cast(x[..., :rotary_dim], dtype)
        if self.layout == "halves":
            first = pairs[..., : rotary_dim // 2]
            second = pairs[..., rotary_dim // 2 :]
        else:
            first, second = pairs[..., 0::2], pairs[..., 1::2]
        rotated = (
            first * cosine - second * sine,
            second * cosine + first * sine,
        )
        if self.layout == "halves":
            rotated = ops.concatenate(rotated, axis=-1)
        else:
            rotated = ops.reshape(ops.stack(rotated, axis=-1), ops.shape(pairs))
        rotated = ops.cast(rotated, x.dtype)
        if rotary_dim == x.shape[-1]:
            return rotated
        return ops.concatenate([rotated, x[..., rotary_dim:]], axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
            "rotary_dim": self.rotary_dim,
            "layout": self.layout,
        }


def _check_even(name, rotary_dim):
    if rotary_dim % 2:
        raise ValueError(
            f"`{name}` must be even, because features are rotated in pairs. "
            f"Received: {name}={rotary_dim}"
        )
