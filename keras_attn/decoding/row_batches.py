"""Batches of rows of similar length."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.backend import shard_rows
from keras_attn.decoding.token_rows import padded
from keras_attn.typing import Nest, Tensor, TensorLike


def row_batches(inputs: Nest, size: int) -> list[Tensor]:
    """Splits rows into batches of equal size, the longest rows first.

    Batches then contain little padding, the first one needs the most memory,
    and the last one, filled with copies of its last row, costs least. Rows of
    equal length stay in order.

    Args:
        inputs: nest of arrays with one row per source; token rows are object
            arrays.
        size: int in [1, B]. Rows per batch.

    Returns:
        List of NumPy int (size,), the row indices.
    """
    leaves = keras.tree.flatten(inputs)
    count = len(leaves[0])
    lengths = np.zeros(count, int)
    for leaf in leaves:
        if leaf.dtype == object:
            lengths = np.maximum(lengths, [len(row) for row in leaf])
    order = np.argsort(-lengths, kind="stable")
    # The last row fills the last batch.
    indices = np.minimum(np.arange(-(-count // size) * size), count - 1)
    return list(order[indices].reshape(-1, size))


def taken(
    inputs: Nest, chosen: TensorLike, pad_id: int, limit: int | None = None
) -> Nest:
    """Gathers rows of a nest as tensors, split over the devices of a mesh.

    Args:
        inputs: nest of arrays, as for `row_batches`, or None.
        chosen: int (size,), row indices.
        pad_id: int. Fills token rows at the end.
        limit: int. Maximum number of tokens of a source. Default None: no
            limit.

    Returns:
        A nest of tensors of the same structure, with `size` rows.
    """

    def take(array):
        if array is None:
            return None
        rows = array[chosen]
        if rows.dtype == object:
            rows = padded(rows, pad_id, limit)
        return shard_rows(keras.ops.convert_to_tensor(rows))

    return keras.tree.map_structure(take, inputs)


def in_order(
    parts: Sequence[Any], batches: Sequence[TensorLike], count: int
) -> list[Tensor]:
    """Joins the results of batches in the order of the rows.

    Args:
        parts: list of tuples of arrays with `size` rows, one tuple per batch.
        batches: list of int (size,), as returned by `row_batches`.
        count: int. B.

    Returns:
        List of NumPy arrays with B rows. Last axes of different sizes are
        padded with zeros.
    """
    back = np.argsort(np.concatenate(batches)[:count])
    return [
        np.concatenate(_equally_wide(column))[:count][back]
        for column in zip(*parts, strict=True)
    ]


def fitted(array: TensorLike, width: int) -> Any:
    """Truncates or zero-pads the last axis to `width`."""
    array = array[..., :width]
    missing = width - array.shape[-1]
    if not missing:
        return array
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])


def _equally_wide(arrays):
    if arrays[0].ndim == 1:
        return arrays
    width = max(array.shape[-1] for array in arrays)
    return [fitted(array, width) for array in arrays]
