"""Sharding of decoding state under `keras.distribution`.

Only JAX shards tensors; on the other backends a distribution changes nothing
(as of Keras 3.15.1).
"""

import keras

# The path under which a layout map has the layout of cached keys and values,
# (B, K, S, H).
CACHE_PATH = "keras_attn/key_value_cache"


def active_distribution():
    """Returns the active distribution, or None if tensors are not sharded."""
    if keras.backend.backend() != "jax":
        return None
    return keras.distribution.distribution()


def splits_weights():
    """Returns whether the active distribution may split weights."""
    return isinstance(active_distribution(), keras.distribution.ModelParallel)


def row_shards():
    """Returns the number of parts that the rows of a batch are split into."""
    distribution = active_distribution()
    if distribution is None:
        return 1
    mesh = distribution.device_mesh
    return mesh.shape[list(mesh.axis_names).index(distribution.batch_dim_name)]


def row_divisor():
    """Returns what must divide the rows that this process passes to Keras."""
    distribution = active_distribution()
    if distribution is None:
        return 1
    return max(row_shards() // distribution.num_processes, 1)


def processes_share_rows():
    """Returns whether all processes compute the rows of a batch together."""
    distribution = active_distribution()
    return distribution is not None and distribution.num_processes > 1


def shard_rows(tensor):
    """Splits the first axis of a tensor over the devices that split batches.

    Args:
        tensor: tensor with rows along the first axis.

    Returns:
        The tensor, unchanged without a distribution and if the rows cannot be
        split evenly.
    """
    distribution = active_distribution()
    if distribution is None or not _rows_divide(tensor):
        return tensor
    layout = distribution.get_data_layout(tensor.shape)
    return keras.distribution.distribute_tensor(tensor, layout)


def shard_cache(tensor):
    """Splits a cache by rows, and by heads as the layout map asks for.

    Args:
        tensor: float (B, K, ...). Keys or values.

    Returns:
        The tensor.
    """
    distribution = active_distribution()
    layout = distribution and distribution.get_tensor_layout(CACHE_PATH)
    if layout is None or not _rows_divide(tensor):
        return shard_rows(tensor)
    return keras.distribution.distribute_tensor(tensor, layout)


def _rows_divide(tensor):
    rows = tensor.shape[0]
    return rows is not None and rows % row_shards() == 0
