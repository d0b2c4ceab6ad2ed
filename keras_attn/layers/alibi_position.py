"""ALiBi: attention with linear biases."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops import PositionBias


@keras.saving.register_keras_serializable(package="keras_attn")
class ALiBiPosition(AttentionPosition):
    """Lowers each score by the distance of query and key, per head.

        bias[n, t, s] = -m_n |p_t - p_s|
        m_n = 2^(-8 n / N), 1 <= n <= N, where N is a power of two

    Press et al. 2022, sec. 3, https://arxiv.org/abs/2108.12409. For other N,
    with P the power of two below, the slopes are those of P heads, and then
    the first, third, fifth, ... of those of 2 P heads, as in the authors' code.

    The form is symmetric: an encoder sees both sides alike, and in a causal
    attention, where p_s <= p_t, it is that of the paper. (BLOOM and MPT add
    m_n p_s, which the softmax cannot tell from it.) There are no weights.

    Args:
        num_heads: int >= 1. N, that of the attention.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: `num_heads` is not a positive int, or not that of the
            attention.

    Examples:
        >>> position = keras_attn.layers.ALiBiPosition(num_heads=2)
        >>> places = keras_attn.ops.positions.default_positions(3)
        >>> bias = position.bias().function(None, places, places)
        >>> keras.ops.convert_to_numpy(bias)[0, 0].tolist()[2]
        [-0.125, -0.0625, -0.0]
    """

    def __init__(self, num_heads, **kwargs):
        checks.positive_int("num_heads", num_heads)
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def check(self, num_heads, key_dim):
        """Raises ValueError where the attention has other heads."""
        self._check_heads(num_heads)

    def bias(self):
        """Returns the `PositionBias` of all heads, in float32."""
        return PositionBias(_Lines(_slopes(self.num_heads)))

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "num_heads": self.num_heads}


@dataclasses.dataclass(frozen=True)
class _Lines:
    """The bias as a function; equal slopes make equal functions."""

    slopes: tuple

    def __call__(self, parameters, query_positions, key_positions):
        distance = ops.abs(
            ops.subtract(
                ops.cast(query_positions, "int32")[:, None, :, None],
                ops.cast(key_positions, "int32")[:, None, None, :],
            )
        )
        falling = -np.array(self.slopes, dtype="float32")[:, None, None]
        return ops.multiply(ops.cast(distance, "float32"), falling)


def _slopes(num_heads):
    below = 2 ** (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * n / below) for n in range(1, below + 1)]
    between = [2.0 ** (-4 * n / below) for n in range(1, 2 * below + 1, 2)]
    return tuple([*slopes, *between][:num_heads])
