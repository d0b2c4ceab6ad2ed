"""Random numbers on PyTorch from a seed whose values cannot be read.

PyTorch's generators take their seed as a Python number. Reading it from a GPU
would block until the GPU has caught up, and would split a compiled graph.
"""

import math
from typing import Any

import keras

from keras_attn.backend.inspection import is_concrete
from keras_attn.typing import TensorLike

if keras.backend.backend() == "torch":
    import torch

GOLDEN = 0x9E3779B1  # odd, its bits far apart
# The finalizer of MurmurHash3, which mixes all bits.
# Appleby 2011, https://github.com/aappleby/smhasher/wiki/MurmurHash3
SHIFTS_AND_FACTORS = (16, 0x85EBCA6B), (13, 0xC2B2AE35)
LAST_SHIFT = 16
_WORD = (1 << 32) - 1
_MANTISSA = 24


def hashed_bits(
    shape: tuple[int, ...], seed: TensorLike, block: int = 0
) -> Any:
    """Hashes the index of each element, as `hashed_dropout` does.

    Args:
        shape: tuple of int.
        seed: integer tensor (2,).
        block: int. Blocks are independent.

    Returns:
        Int64 of that shape, 32 random bits each.
    """
    seed = seed.to(torch.int64)
    second = (seed[1] + block * GOLDEN) & _WORD
    first = _mixed((seed[0] + _mixed(second)) & _WORD)
    second = _mixed(second ^ first)
    count = math.prod(shape)
    index = torch.arange(count, dtype=torch.int64, device=seed.device)
    bits = _mixed((index & _WORD) ^ first)
    return _mixed((bits + second) & _WORD).reshape(tuple(shape))


def advance_seed(state: TensorLike) -> int:
    """Draws a seed on PyTorch, as `keras.random.SeedGenerator.next` does.

    Keras's method splits a program of `torch.compile` (as of Keras 3.15.1,
    keras/src/backend/torch/random.py:154).

    Args:
        state: variable (2,), of the seed generator.

    Returns:
        Int (2,).
    """
    seed = state.value.clone()
    step = torch.arange(2, dtype=seed.dtype, device=seed.device)
    state.assign(seed + step)
    return seed


def uniform(
    shape: tuple[int, ...],
    seed_generator: keras.random.SeedGenerator,
    minval: float = 0.0,
) -> Any:
    """Draws float32 numbers from [minval, 1).

    Args:
        shape: tuple of int or scalar tensors.
        seed_generator: `keras.random.SeedGenerator` that the seed is drawn
            from.
        minval: float. Default 0.0.

    Returns:
        Float32 of that shape.
    """
    if keras.backend.backend() == "torch":
        state = seed_generator.state.value
        if not (state.is_meta or is_concrete(state)):
            bits = hashed_bits(shape, seed_generator.next())
            fractions = (bits >> (32 - _MANTISSA)).to(torch.float32)
            return fractions * ((1 - minval) * 2.0**-_MANTISSA) + minval
    return keras.random.uniform(
        shape, minval=minval, dtype="float32", seed=seed_generator
    )


def _mixed(bits):
    # In 64 bits, where a product that overflows keeps its lower 32 bits.
    for shift, factor in SHIFTS_AND_FACTORS:
        bits = ((bits ^ (bits >> shift)) * factor) & _WORD
    return bits ^ (bits >> LAST_SHIFT)
