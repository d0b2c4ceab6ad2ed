"""Counts ids per row."""

import keras
from keras import ops

from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch


def count_ids(ids: TensorLike, size: int) -> Tensor:
    """Counts how often each id occurs in a row.

    `keras.ops.scatter` takes a step per id on PyTorch (as of Keras 3.15.1), and
    a one-hot matrix would take memory for each id of a row.

    Args:
        ids: int32 (..., N), below `size`; negative ids are not counted.
        size: int. V.

    Returns:
        Float32 (..., V).
    """
    # A slot at the end for ids that are not counted.
    ids = ops.where(ids < 0, size, ids)
    *leading, _ = ids.shape
    if keras.backend.backend() == "torch":
        counts = torch.zeros((*leading, size + 1), device=ids.device)
        ones = torch.ones(ids.shape, device=ids.device)
        return counts.scatter_add(-1, ids.to(torch.int64), ones)[..., :size]
    rows = 1
    for number in leading:
        rows *= number
    flat = ops.reshape(ids, (rows, -1))
    first = ops.arange(rows, dtype="int32")[:, None] * (size + 1)
    flat = ops.reshape(flat + first, (-1,))
    counts = ops.segment_sum(
        ops.ones_like(flat, dtype="float32"), flat, rows * (size + 1)
    )
    return ops.reshape(counts, (*leading, size + 1))[..., :size]
