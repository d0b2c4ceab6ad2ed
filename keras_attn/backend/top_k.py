"""The largest entries of each row, the same ones on every backend."""

import math

import keras
from keras import ops

if keras.backend.backend() == "torch":
    import torch

_WORTH_IT = 8  # entries in a piece


def top_k(x, count):
    """Finds the largest entries along the last axis, in falling order.

    Among equals the one of the lower index comes first. PyTorch's own `topk`
    promises no order, so that the backends would disagree wherever two entries
    tie. Which entries of -inf are taken stays open: they are nobody's choice.

    Args:
        x: float32 (..., N), without NaN.
        count: int, 1 <= count <= N.

    Returns:
        The entries, float32 (..., count), and their indices, int32, likewise.
    """
    if keras.backend.backend() != "torch":
        return _of_program(x, count)
    return torch.ops.keras_attn.top_k(x, count)


def of_torch(x, count):
    """Finds them on PyTorch; a graph calls it, since it looks at values."""
    # One more than is wanted: it may tie with the last that is.
    values, indices = torch.topk(x, min(count + 1, x.shape[-1]), dim=-1)
    after, before = values[..., 1:], values[..., :-1]
    if ((after == before) & (after > -float("inf"))).any():
        values, indices = _settled(x, count)
    # As the shapes below say: what is compiled relies on the strides.
    indices = indices[..., :count].to(torch.int32)
    return values[..., :count].contiguous(), indices.contiguous()


def argmax_first(x):
    """Finds the first of the largest entries along the last axis.

    Args:
        x: float32 (..., N).

    Returns:
        Its index, int32 (...).
    """
    if keras.backend.backend() == "torch":
        return ops.cast(ops.argmax(x, axis=-1), "int32")
    # A maximum and a minimum become vector code, an `argmax` does not.
    places = ops.arange(x.shape[-1], dtype="int32")
    most = ops.max(x, axis=-1, keepdims=True)
    found = ops.where(x == most, places, x.shape[-1] - 1)
    return ops.min(found, axis=-1)


def _of_program(x, count):
    """Looks at whole pieces of a long row first, which is vector code.

    The `count` largest lie in the `count` pieces with the largest maxima, of
    equal ones the first: each other piece has as many entries before its own.
    """
    size = x.shape[-1]
    piece = math.isqrt(size // count)
    if piece < _WORTH_IT:
        return _top(x, count)
    near = sorted(range(piece // 2 + 1, 2 * piece), key=lambda n: -size % n)
    piece = near[0]
    missing = -size % piece
    if missing:
        # They are the last of all, so that they are never taken.
        ends = [(0, 0)] * (len(x.shape) - 1) + [(0, missing)]
        x = ops.pad(x, ends, constant_values=-float("inf"))
    leading = ops.shape(x)[:-1]
    pieces = ops.reshape(x, (*leading, (size + missing) // piece, piece))
    _, chosen = _top(ops.max(pieces, axis=-1), count)
    chosen = ops.sort(chosen, axis=-1)[..., None]
    within = ops.take_along_axis(pieces, chosen, axis=-2)
    values, places = _top(ops.reshape(within, (*leading, -1)), count)
    indices = chosen * piece + ops.arange(piece, dtype="int32")
    indices = ops.reshape(indices, (*leading, -1))
    return values, ops.take_along_axis(indices, places, axis=-1)


def _top(x, count):
    # XLA ranks -0.0 below 0.0.
    x = ops.where(x == 0, 0.0, x)
    values, indices = ops.top_k(x, count)
    return values, ops.cast(indices, "int32")


def _settled(x, count):
    """Ranks whole numbers that hold both the entry and its index.

    A stable sort would do the same, a row of a vocabulary at a time.
    """
    # As whole numbers, floats keep their order, but for the signs.
    bits = (x + 0.0).view(torch.int32)  # no -0.0
    ranks = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64)
    behind = torch.arange(x.shape[-1] - 1, -1, -1, device=x.device)
    keys = torch.topk((ranks << 32) | behind, count, dim=-1).values
    indices = x.shape[-1] - 1 - (keys & 0xFFFFFFFF)
    return torch.gather(x, -1, indices), indices


def _shapes(x, count):
    shape = (*x.shape[:-1], count)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int32)


if keras.backend.backend() == "torch":
    # An operation of its own stays one in a graph that is taken without values.
    torch.library.define(
        "keras_attn::top_k", "(Tensor x, int count) -> (Tensor, Tensor)"
    )
    torch.library.impl(
        "keras_attn::top_k", "CompositeExplicitAutograd", of_torch
    )
    torch.library.register_fake("keras_attn::top_k", _shapes)
