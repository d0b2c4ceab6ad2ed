"""Dropout with cheap random numbers.

Backends draw a float with 24 random bits per element, for a single comparison,
and spend a quarter of a training step on it (as of Keras 3.15.1). Here 16 bits
are drawn: the rate is off by at most 2^-17, and the scale is that of the actual
rate.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.backend.hashed_bits import (
    GOLDEN,
    LAST_SHIFT,
    SHIFTS_AND_FACTORS,
    hashed_bits,
)
from keras_attn.backend.inspection import is_concrete, is_torch_program
from keras_attn.backend.xla_compiled import xla_compiled
from keras_attn.typing import Tensor, TensorLike

_LEVELS = 1 << 16

if keras.backend.backend() == "torch":
    import torch


def dropout(
    x: TensorLike,
    rate: float,
    seed_generator: keras.random.SeedGenerator,
    seeded: bool,
) -> Tensor:
    """Sets elements to zero at random and scales up the others.

    Args:
        x: float, any shape.
        rate: float in (0, 1). Probability that an element is dropped.
        seed_generator: `keras.random.SeedGenerator` that the seed is drawn
            from.
        seeded: bool. Whether the user set the seed. If not, PyTorch's own
            generator is used, as in Keras.

    Returns:
        Float in the shape and dtype of `x`.
    """
    return seeded_dropout(x, rate, drawn_seed(seed_generator, seeded))


def drawn_seed(
    seed_generator: keras.random.SeedGenerator, seeded: bool
) -> int | None:
    """Draws a seed, or returns None to use PyTorch's own generator.

    Args:
        seed_generator: `keras.random.SeedGenerator`.
        seeded: bool. Whether the user set the seed.

    Returns:
        Int (2,), or None.
    """
    if keras.backend.backend() == "torch" and not seeded:
        return None
    return seed_generator.next()


def kept_seed(seed: Any) -> Any:
    """Returns a reproducible seed, newly drawn if None is given.

    Args:
        seed: int (2,), or None, from `drawn_seed`.

    Returns:
        Int (2,).
    """
    return torch.randint(1 << 31, (2,)) if seed is None else seed


def seeded_dropout(
    x: TensorLike, rate: float, seed: Any, block: int | TensorLike = 0
) -> Tensor:
    """Applies dropout, deterministically for a given seed.

    Args:
        x: float, any shape.
        rate: float in (0, 1). Probability that an element is dropped.
        seed: int (2,), from `keras.random.SeedGenerator.next()`; or None on
            PyTorch to use its own generator, not reproducible.
        block: int or int32 scalar. Index of `x` in a larger tensor. Blocks are
            dropped independently.

    Returns:
        Float in the shape and dtype of `x`.
    """
    if seed is None:
        if is_torch_program() or x.device.type not in ("cpu", "meta"):
            # One fused kernel; random numbers are cheap on a GPU.
            return torch.nn.functional.dropout(x, rate)
        return _dropped(x, rate, None)
    if keras.backend.backend() == "torch":
        if not is_concrete(seed):
            return _torch_hashed(x, _number_dropped(rate), seed, block)
        seed = [*(int(part) for part in seed), int(block)]
    else:
        seed = ops.cast(seed, "uint32")
        block = ops.cast(block, "uint32") * np.uint32(GOLDEN)
        seed = ops.stack([seed[0], seed[1] + block])
    return _dropped(x, rate, seed)


def hashed_dropout(x: TensorLike, rate: float, seed: Any) -> Tensor:
    """Drops by a hash of the element's index, which fuses into other passes.

    On a CPU, Threefry and Philox take ten times as long as a pass over `x`
    (as of JAX 0.10.2 and TensorFlow 2.21.0).

    Args:
        x: float, any shape.
        rate: float in (0, 1). Probability that an element is dropped.
        seed: int (2,).

    Returns:
        Float in the shape and dtype of `x`.
    """
    dropped = _number_dropped(rate)
    seed = ops.cast(seed, "uint32")
    first = _mixed(seed[0] + _mixed(seed[1]))
    second = _mixed(ops.bitwise_xor(seed[1], first))
    index = ops.arange(ops.size(x), dtype="int32")
    index = ops.cast(ops.reshape(index, ops.shape(x)), "uint32")
    bits = _mixed(_mixed(ops.bitwise_xor(index, first)) + second)
    keep = ops.right_shift(bits, _word(16)) >= _word(dropped)
    return ops.where(keep, x * (_LEVELS / (_LEVELS - dropped)), 0)


def _mixed(bits):
    """Applies the 32-bit finalizer of MurmurHash3."""
    for shift, factor in SHIFTS_AND_FACTORS:
        shifted = ops.right_shift(bits, _word(shift))
        bits = ops.bitwise_xor(bits, shifted) * _word(factor)
    return ops.bitwise_xor(bits, ops.right_shift(bits, _word(LAST_SHIFT)))


def _word(number):
    return ops.convert_to_tensor(np.uint32(number))


def _number_dropped(rate):
    return min(max(round(rate * _LEVELS), 1), _LEVELS - 1)


def _dropped(x, rate, seed):
    if keras.backend.backend() == "torch":
        return _torch(x, _number_dropped(rate), seed)
    return _hashed_program(x, rate, seed)


_hashed_program = xla_compiled(hashed_dropout)


def _torch_hashed(x, dropped, seed, block):
    if x.device.type == "meta":
        return torch.empty_like(x)
    keep = hashed_bits(x.shape, seed, block) >> 16 >= dropped
    return torch.where(keep, x * (_LEVELS / (_LEVELS - dropped)), 0)


def _torch(x, dropped, seed):
    if x.device.type == "meta":
        return torch.empty_like(x)
    generator = None
    if seed is not None:
        # PyTorch's CPU generator uses 32 bits of a seed (as of PyTorch 2.13.0),
        # so all parts of this one are hashed into them.
        parts = [int(part) % (1 << 32) for part in seed]
        (word,) = np.random.SeedSequence(parts).generate_state(1)
        generator = torch.Generator(device=x.device)
        generator.manual_seed(int(word))
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    # 64 bits are drawn at once, because the generator is not parallel
    # (as of PyTorch 2.13.0).
    words.random_(-(1 << 63), None, generator=generator)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    # All bits set or none, in three passes over short integers: a boolean mask
    # and a selection take five times as long on a CPU (as of PyTorch 2.13.0).
    least = dropped - _LEVELS // 2
    keep = bits.clamp_(least - 1, least).sub_(least - 1).neg_()
    return _TorchDropout.apply(x, keep, _LEVELS / (_LEVELS - dropped))


if keras.backend.backend() == "torch":
    _INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}

    class _TorchDropout(torch.autograd.Function):
        """Takes two passes forward and two backward; autograd takes six.

        (As of PyTorch 2.13.0.)
        """

        @staticmethod
        def forward(ctx, x, keep, scale):
            ctx.save_for_backward(keep)
            ctx.scale = scale
            return _TorchDropout.kept(x, keep, scale)

        @staticmethod
        def backward(ctx, upstream):
            (keep,) = ctx.saved_tensors
            slope = _TorchDropout.kept(upstream, keep, ctx.scale)
            return slope, None, None

        @staticmethod
        def kept(x, keep, scale):
            # Bitwise: dropped elements are 0 even if they were NaN.
            integers = _INTEGERS[x.element_size()]
            bits = x.contiguous().view(integers).bitwise_and(keep.to(integers))
            return bits.view(x.dtype).mul_(scale)
