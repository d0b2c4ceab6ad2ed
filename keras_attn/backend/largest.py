"""The largest entries of each row, the same ones on every backend."""

import keras
from keras import ops

if keras.backend.backend() == "torch":
    import torch


def largest(x, count):
    """Finds the largest entries along the last axis, in falling order.

    Among equals the one of the lower index comes first. PyTorch's own `topk`
    promises no order, so that the backends would disagree wherever two entries
    tie. Which entries of -inf are taken stays open: they are nobody's choice.

    Args:
        x: float (..., N), without NaN.
        count: int, 1 <= count <= N.

    Returns:
        The entries, float (..., count), and their indices, int32, likewise.
    """
    if keras.backend.backend() != "torch":
        values, indices = ops.top_k(x, count)
        return values, ops.cast(indices, "int32")
    # One more than is wanted: it may tie with the last that is.
    values, indices = torch.topk(x, min(count + 1, x.shape[-1]), dim=-1)
    after, before = values[..., 1:], values[..., :-1]
    if ((after == before) & (after > -float("inf"))).any():
        values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[..., :count], indices[..., :count].to(torch.int32)
