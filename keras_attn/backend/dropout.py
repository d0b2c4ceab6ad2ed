"""Dropout whose random numbers do not cost a quarter of a training step.

A float of 24 random bits an element is what backends draw, and all that is
asked of it is one comparison. Sixteen bits are drawn here: the share that is
dropped is off by at most 2^-17, and the scale is that of the true share.
"""

import keras
import numpy as np
from keras import ops

_LEVELS = 1 << 16

if keras.backend.backend() == "jax":
    import jax
elif keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def dropout(x, rate, seed_generator, seeded):
    """Sets elements to zero at random and scales up the others.

    Args:
        x: float, any shape.
        rate: float in (0, 1). Probability that an element is dropped.
        seed_generator: `keras.random.SeedGenerator`, from which a seed is
            drawn.
        seeded: bool. Whether the user gave that seed. If not, PyTorch's own
            generator is asked, as Keras does.

    Returns:
        Float in the shape and dtype of `x`.
    """
    dropped = min(max(round(rate * _LEVELS), 1), _LEVELS - 1)
    return _IMPLEMENTATIONS[keras.backend.backend()](
        x, rate, dropped, seed_generator, seeded
    )


def _scaled(x, keep, dropped):
    return ops.where(keep, x * (_LEVELS / (_LEVELS - dropped)), 0)


def _jax(x, rate, dropped, seed_generator, seeded):
    # Threefry and Philox cost ten times a pass over x on a CPU. A hash of the
    # element's index is fused into that pass.
    first, second = seed_generator.next().astype("uint32")
    first = _mixed(first + _mixed(second))
    second = _mixed(second ^ first)
    index = jax.lax.iota("uint32", x.size).reshape(x.shape)
    bits = _mixed(_mixed(index ^ first) + second) >> 16
    return _scaled(x, bits >= dropped, dropped)


def _mixed(bits):
    """The 32-bit finaliser of MurmurHash3: each bit depends on every other.

    Appleby 2011, https://github.com/aappleby/smhasher/wiki/MurmurHash3
    """
    bits = (bits ^ (bits >> 16)) * jax.numpy.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jax.numpy.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


def _torch(x, rate, dropped, seed_generator, seeded):
    if x.device.type == "meta":
        return torch.empty_like(x)
    if x.device.type != "cpu" and not seeded:
        # One fused kernel, whose generator is cheap there.
        return torch.nn.functional.dropout(x, rate)
    generator = None
    if seeded:
        # PyTorch's CPU generator looks at 32 bits of a seed: these must hold
        # both parts of Keras's.
        parts = [int(part) % (1 << 32) for part in seed_generator.next()]
        (seed,) = np.random.SeedSequence(parts).generate_state(1)
        generator = torch.Generator(device=x.device)
        generator.manual_seed(int(seed))
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    # Sixty-four bits are drawn at once: the generator is not parallel.
    words.random_(-(1 << 63), None, generator=generator)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    keep = bits >= dropped - _LEVELS // 2
    return _TorchDropout.apply(x, keep, _LEVELS / (_LEVELS - dropped))


def _tensorflow(x, rate, dropped, seed_generator, seeded):
    shape = tf.shape(x)
    size = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform(
        [(size + 3) // 4],
        tf.cast(seed_generator.next(), tf.int32),
        minval=None,
        maxval=None,
        dtype=tf.uint64,
        alg="philox",
    )
    bits = tf.reshape(tf.bitcast(words, tf.int16), [-1])[:size]
    keep = tf.reshape(bits, shape) >= dropped - _LEVELS // 2
    return _scaled(x, keep, dropped)


if keras.backend.backend() == "torch":

    class _TorchDropout(torch.autograd.Function):
        """Two passes forward and two backward, in place; autograd takes six."""

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
            return torch.where(keep, x, torch.zeros((), dtype=x.dtype)).mul_(
                scale
            )


_IMPLEMENTATIONS = {"jax": _jax, "torch": _torch, "tensorflow": _tensorflow}
