"""ALiBi: attention with linear biases."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.ops import PositionBias


@keras.saving.register_keras_serializable(package="keras_attn")
class ALiBiPosition(AttentionPosition):
    """Linear attention bias (ALiBi), proportional to the distance, per head.

        bias[n, t, s] = -m_n |p_t - p_s|
        m_n = 2^(-8 n / N), 1 <= n <= N, where N is a power of two

    Press et al. 2022, sec. 3, https://arxiv.org/abs/2108.12409. For other N,
    with P the next lower power of two, the slopes are those of P heads,
    followed by every other slope of 2 P heads, starting with the first, as in
    the authors' code.

    The bias is symmetric, so it also works in encoders; in causal attention,
    where p_s <= p_t, it equals that of the paper. (BLOOM and MPT add m_n p_s,
    which is equivalent under the softmax.) There are no weights.

    Args:
        num_heads: int >= 1. N of the attention layer.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Raises:
        ValueError: `num_heads` is not a positive int or differs from that of
            the attention layer.

    Examples:
        >>> position = keras_attn.layers.ALiBiPosition(num_heads=2)
        >>> positions = keras_attn.ops.positions.default_positions(3)
        >>> bias = position.bias().function(None, positions, positions)
        >>> keras.ops.convert_to_numpy(bias)[0, 0].tolist()[2]
        [-0.125, -0.0625, -0.0]
    """

    def __init__(self, num_heads: int, **kwargs: Any) -> None:
        checks.positive_int("num_heads", num_heads)
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def check(self, num_heads: int, key_dim: int) -> None:
        """Raises ValueError if `num_heads` differs from the attention layer."""
        self._check_heads(num_heads)

    def bias(self) -> PositionBias:
        """Returns the float32 `PositionBias` of all heads."""
        return PositionBias(_LinearBias(_slopes(self.num_heads)))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "num_heads": self.num_heads}


@dataclasses.dataclass(frozen=True)
class _LinearBias:
    """Bias as a function that compares equal if its slopes are equal."""

    slopes: tuple

    def __call__(self, parameters, query_positions, key_positions):
        distance = ops.abs(
            ops.subtract(
                ops.cast(query_positions, "int32")[:, None, :, None],
                ops.cast(key_positions, "int32")[:, None, None, :],
            )
        )
        # No NumPy array: it would split a program of `torch.compile`
        # (as of PyTorch 2.13.0).
        slopes = ops.convert_to_tensor([-x for x in self.slopes], "float32")
        slopes = slopes[:, None, None]
        return ops.multiply(ops.cast(distance, "float32"), slopes)


def _slopes(num_heads):
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * n / power) for n in range(1, power + 1)]
    between = [2.0 ** (-4 * n / power) for n in range(1, 2 * power + 1, 2)]
    return tuple([*slopes, *between][:num_heads])
