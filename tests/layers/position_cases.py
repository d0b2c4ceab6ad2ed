"""Attention layers with each position, and their expected scores."""

import numpy as np
from keras import ops

from keras_attn.layers import (
    ALiBiPosition,
    MultiHeadAttention,
    RotaryPosition,
    T5Position,
    TransformerXLPosition,
)
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import normal, values

B, T, D, N, H = 2, 6, 6, 2, 4
X = normal(B, T, D, seed=1)

POSITIONS = {
    "rotary": lambda **kwargs: RotaryPosition(**kwargs),
    "rotary, in pairs": lambda **kwargs: RotaryPosition(
        max_wavelength=50.0, rotary_dim=2, layout="interleaved", **kwargs
    ),
    "alibi": lambda **kwargs: ALiBiPosition(N, **kwargs),
    "t5": lambda **kwargs: T5Position(N, 8, 6, **kwargs),
    "t5, causal": lambda **kwargs: T5Position(
        N, 6, 5, bidirectional=False, **kwargs
    ),
    "transformer-xl": lambda **kwargs: TransformerXLPosition(N, H, **kwargs),
}


def make(name, width=D, **kwargs):
    """Builds a layer with the named position and nonzero weights."""
    position = None if name is None else POSITIONS[name]()
    layer = MultiHeadAttention(N, H, attention_position=position, **kwargs)
    layer.build((None, None, D), (None, None, width))
    return randomize(layer, scale=0.6)


def positions(array):
    """Converts positions to an int32 tensor."""
    return ops.convert_to_tensor(np.int32(array))


def bias_of(position, query_positions, key_positions):
    """Returns the bias (B, N, T, S) of a position, as a kernel computes it."""
    bias = position.bias()
    return values(
        bias.function(
            bias.parameters,
            positions(query_positions),
            positions(key_positions),
        )
    )


def turned(x, position_ids, base=10000.0, width=None, layout="halves"):
    """Computes (x_a + i x_b) e^(i p w) per pair, in float64; x (B, T, N, H)."""
    result = np.array(x, "float64")
    width = x.shape[-1] if width is None else width
    for index in range(width // 2):
        pair = index, index + width // 2
        if layout == "interleaved":
            pair = 2 * index, 2 * index + 1
        angle = np.asarray(position_ids, "float64") / base ** (
            2 * index / width
        )
        number = result[..., pair[0]] + 1j * result[..., pair[1]]
        number = number * np.exp(1j * angle)[..., None]
        result[..., pair[0]] = number.real
        result[..., pair[1]] = number.imag
    return result
