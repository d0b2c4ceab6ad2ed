"""Which rows are decoded together: those of like length."""

import keras
import numpy as np

from keras_attn.decoding.token_rows import padded


def row_batches(inputs, size):
    """Splits rows into batches of equal size, the longest rows first.

    So a batch holds little padding, the first one needs the most memory, and
    the last one, which is filled up with copies of its last row, costs least.
    Rows of equal length stay in order.

    Args:
        inputs: nest of arrays with one row a source, of which those of token
            rows are object arrays.
        size: int in [1, B]. Rows of a batch.

    Returns:
        List of NumPy int (size,), the numbers of the rows.
    """
    leaves = keras.tree.flatten(inputs)
    count = len(leaves[0])
    lengths = np.zeros(count, int)
    for leaf in leaves:
        if leaf.dtype == object:
            lengths = np.maximum(lengths, [len(row) for row in leaf])
    order = np.argsort(-lengths, kind="stable")
    # Past the end, the last row again.
    places = np.minimum(np.arange(-(-count // size) * size), count - 1)
    return list(order[places].reshape(-1, size))


def taken(inputs, chosen, pad_id, limit=None):
    """Takes rows out of a nest, as tensors.

    Args:
        inputs: nest of arrays, as for `row_batches`, or None.
        chosen: int (size,), numbers of rows.
        pad_id: int. What is put behind token rows.
        limit: int. The most tokens of a source. Default None: any.

    Returns:
        The same nest of tensors with `size` rows.
    """

    def take(array):
        if array is None:
            return None
        rows = array[chosen]
        if rows.dtype == object:
            rows = padded(rows, pad_id, limit)
        return keras.ops.convert_to_tensor(rows)

    return keras.tree.map_structure(take, inputs)


def in_order(parts, batches, count):
    """Joins what the batches gave, in the order of the rows.

    Args:
        parts: list, one item a batch, of tuples of arrays with `size` rows.
        batches: list of int (size,), as `row_batches` returned it.
        count: int. B.

    Returns:
        List of NumPy arrays with B rows. Where the last axes of parts differ,
        there are zeros behind the shorter ones.
    """
    back = np.argsort(np.concatenate(batches)[:count])
    return [
        np.concatenate(_equally_wide(column))[:count][back]
        for column in zip(*parts, strict=True)
    ]


def fitted(array, width):
    """Cuts the last axis to `width`, or fills it up with zeros."""
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
