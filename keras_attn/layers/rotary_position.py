"""Rotary positions: queries and keys turn as they move."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops import sine_and_cosine


@keras.saving.register_keras_serializable(package="keras_attn")
class RotaryPosition(AttentionPosition):
    """Turns each pair of features by an angle that grows with the position.

        (x_a, x_b) -> (x_a cos(p w_i) - x_b sin(p w_i),
                       x_b cos(p w_i) + x_a sin(p w_i))
        w_i = base^(-2i / R), 0 <= i < R / 2

    Su et al. 2021, sec. 3.2.2, eq. 14 and 15,
    https://arxiv.org/abs/2104.09864; R is their d. A dot product of a turned
    query and a turned key depends on the distance of the two alone.

    Pair i is (a, b) = (i, i + R / 2) in the layout `"halves"` (Llama, GPT-NeoX)
    and (2i, 2i + 1) in the layout `"interleaved"` (the paper, GPT-J). Angles
    are exact up to position 131,071, the last one: one beyond is refused, or,
    in a program that is being compiled, NaN. The product is computed in
    float32, in half precision too.

    Args:
        base: float > 0. The waves are 2 pi to 2 pi `base` tokens long.
        width: int, even. R, the features that turn, the first of each head;
            default None: all of them.
        layout: `"halves"` or `"interleaved"`.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: arguments out of range, an odd width, or one that is more
            than the `key_dim` of the attention.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=2, key_dim=4, causal=True,
        ...     position=keras_attn.layers.RotaryPosition())
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> tuple(layer(x, x).shape)
        (2, 5, 8)
    """

    def __init__(self, base=10000.0, width=None, layout="halves", **kwargs):
        number = isinstance(base, (int, float)) and not isinstance(base, bool)
        if not number or not 0 < base < float("inf"):
            raise ValueError(
                f"`base` must be a number > 0. Received: base={base!r}"
            )
        if width is not None:
            checks.positive_int("width", width)
            _check_even("width", width)
        checks.choice("layout", layout, ("halves", "interleaved"))
        super().__init__(**kwargs)
        self.base = base
        self.width = width
        self.layout = layout

    def check(self, num_heads, key_dim):
        """Raises ValueError where the heads are too narrow, or odd."""
        if self.width is None:
            _check_even("key_dim", key_dim)
        elif self.width > key_dim:
            raise ValueError(
                "`width` of a rotary position must be at most the `key_dim` of "
                f"the attention, {key_dim}. Received: width={self.width}"
            )

    def rotate(self, x, positions):
        """Turns queries or keys (B, T, N, H) that stand at `positions`."""
        width = x.shape[-1] if self.width is None else self.width
        sine, cosine = (
            wave[:, :, None]
            for wave in sine_and_cosine(positions, width, self.base)
        )
        dtype = keras.backend.result_type(x.dtype, "float32")
        sine, cosine = ops.cast(sine, dtype), ops.cast(cosine, dtype)
        turning = ops.cast(x[..., :width], dtype)
        if self.layout == "halves":
            first = turning[..., : width // 2]
            second = turning[..., width // 2 :]
        else:
            first, second = turning[..., 0::2], turning[..., 1::2]
        turned = (
            first * cosine - second * sine,
            second * cosine + first * sine,
        )
        if self.layout == "halves":
            turned = ops.concatenate(turned, axis=-1)
        else:
            turned = ops.reshape(ops.stack(turned, axis=-1), ops.shape(turning))
        turned = ops.cast(turned, x.dtype)
        if width == x.shape[-1]:
            return turned
        return ops.concatenate([turned, x[..., width:]], axis=-1)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "base": self.base,
            "width": self.width,
            "layout": self.layout,
        }


def _check_even(name, width):
    if width % 2:
        raise ValueError(
            f"A rotary position turns pairs, so `{name}` must be even. "
            f"Received: {name}={width}"
        )
