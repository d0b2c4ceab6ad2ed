"""Drafts from the tokens so far: what followed their last n-gram before."""

from keras import ops

from keras_attn.backend import argmax_first, take_along_axis
from keras_attn.typing import Tensor, TensorLike


def ngram_drafts(
    tokens: TensorLike, lengths: TensorLike, ngram_size: int, count: int
) -> tuple[Tensor, Tensor]:
    """Finds an earlier occurrence of the last n-gram, and what follows it.

    The longest n-gram with an earlier occurrence counts, and of these the
    first: Saxena 2023, https://github.com/apoorvumang/prompt-lookup-decoding.

    Args:
        tokens: int32 (R, S), the tokens so far after any number of -1.
        lengths: int32 (R,), the index after the last token.
        ngram_size: int >= 1. Tokens of the longest n-gram.
        count: int >= 1. Maximum number of drafted tokens.

    Returns:
        Int32 (R, count), the drafted tokens, and int32 (R,), how many.
    """
    size = tokens.shape[1]
    indices = ops.arange(size, dtype="int32")
    last = lengths[:, None] - 1
    # Earlier occurrences end before the last token.
    found = indices < last
    start = ops.zeros_like(lengths)
    for n in range(ngram_size):
        at = last - n
        token = take_along_axis(tokens, ops.maximum(at, 0))
        token = ops.where(at >= 0, token, -1)
        before = tokens
        if n:
            # The token n positions before each index.
            padding = [(0, 0), (n, 0)]
            before = ops.pad(tokens[:, :-n], padding, constant_values=-1)
        same = ops.logical_and(before == token, token >= 0)
        found = ops.logical_and(found, same)
        first = argmax_first(ops.cast(found, "float32")) + 1
        start = ops.where(ops.any(found, axis=1), first, start)
    offsets = ops.arange(count, dtype="int32")
    taken = start[:, None] + offsets
    drafts = take_along_axis(tokens, ops.minimum(taken, size - 1))
    known = ops.where(start > 0, ops.minimum(lengths - start, count), 0)
    return ops.where(offsets < known[:, None], drafts, 0), known
