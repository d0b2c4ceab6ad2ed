"""Top-k with the same order of ties on every backend."""

import math
from typing import Any

import keras
from keras import ops

from keras_attn.typing import TensorLike

if keras.backend.backend() == "torch":
    import torch

_WORTH_IT = 8  # smallest chunk size


def top_k(x: TensorLike, count: int) -> Any:
    """Finds the largest entries along the last axis, in descending order.

    Ties are broken by the lower index. PyTorch's `topk` guarantees no order
    (pytorch/pytorch#88227, as of PyTorch 2.13.0), so without this the backends
    would disagree on ties. Which of several entries of -inf are returned is
    unspecified, since decoding never selects them.

    Args:
        x: float32 (..., N), without NaN.
        count: int, 1 <= count <= N.

    Returns:
        The entries, float32 (..., count), and their indices, int32
        (..., count).
    """
    if keras.backend.backend() != "torch":
        return _chunked_top_k(x, count)
    return torch.ops.keras_attn.top_k(x, count)


def of_torch(x: TensorLike, count: int) -> tuple[Any, Any]:
    """Computes `top_k` on PyTorch; an operator, because it reads values."""
    # One more entry than requested: it may tie with the last one.
    values, indices = torch.topk(x, min(count + 1, x.shape[-1]), dim=-1)
    after, before = values[..., 1:], values[..., :-1]
    if ((after == before) & (after > -float("inf"))).any():
        values, indices = _settled(x, count)
    # Contiguous, as in `_shapes`: compiled code relies on the strides.
    indices = indices[..., :count].to(torch.int32)
    return values[..., :count].contiguous(), indices.contiguous()


def argmax_first(x: TensorLike) -> Any:
    """Finds the first maximum along the last axis.

    Args:
        x: float32 (..., N).

    Returns:
        Its index, int32 (...).
    """
    if keras.backend.backend() == "torch":
        return ops.cast(ops.argmax(x, axis=-1), "int32")
    # XLA vectorizes a maximum and a minimum, but not `argmax` (as of JAX 0.10.2
    # and TensorFlow 2.21.0).
    indices = ops.arange(x.shape[-1], dtype="int32")
    most = ops.max(x, axis=-1, keepdims=True)
    found = ops.where(x == most, indices, x.shape[-1] - 1)
    return ops.min(found, axis=-1)


def _chunked_top_k(x, count):
    """Reduces a long row to its chunks' maxima first, which is vectorized.

    XLA's `top_k` is not (as of JAX 0.10.2 and TensorFlow 2.21.0).
    The `count` largest entries lie in the `count` chunks with the largest
    maxima, ties broken by the lower index: each of these chunks has an entry
    that precedes all entries of the other chunks.
    """
    size = x.shape[-1]
    chunk = math.isqrt(size // count)
    if chunk < _WORTH_IT:
        return _top(x, count)
    near = sorted(range(chunk // 2 + 1, 2 * chunk), key=lambda n: -size % n)
    chunk = near[0]
    missing = -size % chunk
    if missing:
        # At the end and -inf, so they are never picked.
        ends = [(0, 0)] * (len(x.shape) - 1) + [(0, missing)]
        x = ops.pad(x, ends, constant_values=-float("inf"))
    leading = ops.shape(x)[:-1]
    chunks = ops.reshape(x, (*leading, (size + missing) // chunk, chunk))
    _, chosen = _top(ops.max(chunks, axis=-1), count)
    chosen = ops.sort(chosen, axis=-1)[..., None]
    within = ops.take_along_axis(chunks, chosen, axis=-2)
    values, ranks = _top(ops.reshape(within, (*leading, -1)), count)
    indices = chosen * chunk + ops.arange(chunk, dtype="int32")
    indices = ops.reshape(indices, (*leading, -1))
    return values, ops.take_along_axis(indices, ranks, axis=-1)


def _top(x, count):
    # XLA ranks -0.0 below 0.0 (as of JAX 0.10.2).
    x = ops.where(x == 0, 0.0, x)
    values, indices = ops.top_k(x, count)
    return values, ops.cast(indices, "int32")


def _settled(x, count):
    """Breaks ties by ranking integers that encode the entry and its index.

    A stable sort would give the same result but sort the whole vocabulary.
    """
    # Float bits compare like integers, except for the sign.
    bits = (x + 0.0).view(torch.int32)  # no -0.0
    ranks = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(torch.int64)
    reversed_index = torch.arange(x.shape[-1] - 1, -1, -1, device=x.device)
    keys = torch.topk((ranks << 32) | reversed_index, count, dim=-1).values
    indices = x.shape[-1] - 1 - (keys & 0xFFFFFFFF)
    return torch.gather(x, -1, indices), indices


def _shapes(x, count):
    shape = (*x.shape[:-1], count)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int32)


if keras.backend.backend() == "torch":
    # A custom operator is one node in a captured graph, which has no values.
    torch.library.define(
        "keras_attn::top_k", "(Tensor x, int count) -> (Tensor, Tensor)"
    )
    torch.library.impl(
        "keras_attn::top_k", "CompositeExplicitAutograd", of_torch
    )
    # Not `register_fake`, which searches all loaded modules for its caller and
    # takes as long as the rest of this package (as of PyTorch 2.13.0).
    torch.library.impl("keras_attn::top_k", "Meta", _shapes)
