"""Rotary position embeddings (RoPE)."""

from typing import Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.layers.rope_scaling import RopeScaling
from keras_attn.ops.positions import sequence_lengths
from keras_attn.ops.sinusoids import (
    sine_and_cosine,
    sine_and_cosine_of,
    sine_and_cosine_of_growing,
)
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

    `scaling` changes the angles w_i, so that a model reads sequences longer
    than in its training. It is a dict as in the `rope_parameters` of Hugging
    Face configs, without `rope_theta` (here `max_wavelength`) and
    `partial_rotary_factor` (here `rotary_dim`). Its keys by `rope_type`:

    - `"linear"`: `factor` (Chen et al. 2023, https://arxiv.org/abs/2306.15595).
    - `"dynamic"`: `factor` and `original_max_position_embeddings`, the
      `max_position_embeddings` of the config. NTK scaling by the length.
    - `"yarn"`: `factor`, `original_max_position_embeddings`; optional:
      `beta_fast` (32), `beta_slow` (1), `truncate` (True), `attention_factor`,
      or `mscale` and `mscale_all_dim` (Peng et al. 2023,
      https://arxiv.org/abs/2309.00071).
    - `"llama3"`: `factor`, `low_freq_factor`, `high_freq_factor`,
      `original_max_position_embeddings` (Llama 3.1).
    - `"longrope"`: `short_factor` and `long_factor`, lists of R / 2 numbers,
      `original_max_position_embeddings`, and `factor` or `attention_factor`
      (Ding et al. 2024, https://arxiv.org/abs/2402.13753).
    - `"default"`: no scaling, no keys.

    YaRN and LongRoPE multiply sines and cosines by the attention factor, so
    scores are multiplied by its square. Dynamic scaling and LongRoPE depend on
    the length of the sequence: the largest position of its row or, in a packed
    row, of its segment, plus 1. In decoding with a cache, as in `transformers`,
    the length is that of the prompt, then that of the tokens so far; a key is
    rotated once, when its token is read, and keeps that rotation. With dynamic
    scaling, angles of sequences that exceed the original length are products in
    float32, with an error of 2^-24 of the angle.

    Args:
        max_wavelength: float > 0. Wavelengths range from 2 pi to 2 pi
            `max_wavelength` tokens.
        rotary_dim: int, even. R, the first features of each head, which are
            rotated. Default None: all.
        layout: `"halves"` or `"interleaved"`.
        scaling: dict. Scaling of the angles. Default None: none.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: an argument is out of range, `rotary_dim` is odd or exceeds
            the `key_dim` of the attention layer, or `scaling` has an unknown
            `rope_type`, an unknown or missing key, or another number of factors
            than pairs.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=2, key_dim=4, causal=True,
        ...     attention_position=keras_attn.layers.RotaryPosition())
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> tuple(layer(x, x).shape)
        (2, 5, 8)
        >>> llama3 = keras_attn.layers.RotaryPosition(500_000.0, scaling={
        ...     "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        ...     "high_freq_factor": 4.0,
        ...     "original_max_position_embeddings": 8192})
    """

    def __init__(
        self,
        max_wavelength: float = 10000.0,
        rotary_dim: int | None = None,
        layout: str = "halves",
        scaling: dict[str, Any] | None = None,
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
        if scaling is not None:
            scaling = RopeScaling(scaling, max_wavelength)
            if rotary_dim is not None:
                scaling.check_width(rotary_dim)
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength
        self.rotary_dim = rotary_dim
        self.layout = layout
        self._scaling = scaling

    @property
    def scaling(self) -> dict[str, Any] | None:
        """The scaling, a dict, or None."""
        return None if self._scaling is None else self._scaling.as_dict()

    @property
    def depends_on_length(self) -> bool:
        """Whether a rotation depends on the length of the sequence."""
        return self._scaling is not None and self._scaling.by_length

    def check(self, num_heads: int, key_dim: int) -> None:
        """Raises ValueError if the heads are too narrow or of odd width."""
        if self.rotary_dim is None:
            _check_even("key_dim", key_dim)
        elif self.rotary_dim > key_dim:
            raise ValueError(
                "`rotary_dim` must be at most the `key_dim` of the attention "
                f"layer, {key_dim}. Received: rotary_dim={self.rotary_dim}"
            )
        if self._scaling is not None and self.rotary_dim is None:
            self._scaling.check_width(key_dim)

    def rotate(
        self,
        x: TensorLike,
        positions: TensorLike,
        lengths: TensorLike | None = None,
    ) -> Tensor:
        """Rotates queries or keys (B, T, N, H) at `positions` (B, T).

        Args:
            x: float (B, T, N, H).
            positions: int32 (B, T), a size-1 batch axis allowed; -1 = no token.
            lengths: int32 (B, T), size-1 axes allowed. The length of the
                sequence of each token, for a scaling that depends on it.
                Default: the largest position of the row, plus 1.
        """
        rotary_dim = x.shape[-1] if self.rotary_dim is None else self.rotary_dim
        sine, cosine = (
            wave[:, :, None]
            for wave in self._sine_and_cosine(positions, lengths, rotary_dim)
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

    def _sine_and_cosine(self, positions, lengths, rotary_dim):
        """Returns two float32 (B, T, R / 2)."""
        scaling = self._scaling
        if scaling is None:
            return sine_and_cosine(positions, rotary_dim, self.max_wavelength)
        frequencies = scaling.frequencies(rotary_dim)
        if not scaling.by_length:
            waves = sine_and_cosine_of(positions, frequencies)
        else:
            if lengths is None:
                lengths = sequence_lengths(positions)
            if scaling.rope_type == "dynamic":
                waves = sine_and_cosine_of_growing(
                    positions, *frequencies, scaling.growth(lengths)
                )
            else:
                is_long = ops.cast(lengths > scaling.original_length, "int32")
                waves = sine_and_cosine_of(positions, frequencies, is_long)
        factor = scaling.attention_factor
        return waves if factor == 1 else [factor * wave for wave in waves]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
            "rotary_dim": self.rotary_dim,
            "layout": self.layout,
            "scaling": self.scaling,
        }


def _check_even(name, rotary_dim):
    if rotary_dim % 2:
        raise ValueError(
            f"`{name}` must be even, because features are rotated in pairs. "
            f"Received: {name}={rotary_dim}"
        )
