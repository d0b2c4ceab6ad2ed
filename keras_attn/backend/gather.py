"""Taking entries by indices that are known to be in range."""

import keras
from keras import ops

if keras.backend.backend() == "torch":
    import torch


def gather_rows(x, rows):
    """Takes rows of the first axis.

    `keras.ops.take` also reads negative indices, which on PyTorch are four
    more operations each time.

    Args:
        x: tensor (N, ...).
        rows: int tensor of any shape, in [0, N).

    Returns:
        Tensor, the shape of `rows` and behind it that of a row.
    """
    if keras.backend.backend() != "torch":
        return ops.take(x, rows, axis=0)
    taken = torch.index_select(x, 0, rows.reshape(-1))
    return taken.reshape((*rows.shape, *x.shape[1:]))


def take_along_axis(x, places):
    """Takes entries of the last axis, others in each row.

    Args:
        x: tensor (..., N).
        places: int (..., M), in [0, N).

    Returns:
        Tensor (..., M).
    """
    if keras.backend.backend() != "torch":
        return ops.take_along_axis(x, places, axis=-1)
    return torch.gather(x, -1, places.to(torch.int64))
