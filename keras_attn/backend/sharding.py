"""Sharding of sequences and decoding state under `keras.distribution`.

Only JAX shards tensors; on the other backends a distribution changes nothing
(as of Keras 3.15.1).
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.typing import Tensor, TensorLike

# The path under which a layout map has the layout of cached keys and values,
# (B, K, S, H).
CACHE_PATH = "keras_attn/key_value_cache"
# The path under which it has the layout of queries, (B, T, N, H), if sequences
# are split.
QUERY_PATH = "keras_attn/queries"


class SequenceSplit(NamedTuple):
    """How the active layout splits queries, keys and values (B, T, N, H).

    Args:
        mesh: `jax.sharding.Mesh`.
        rows: str. The mesh axis that splits B, or None.
        context: str. The mesh axis that splits T.
        heads: str. The mesh axis that splits N, or None.
    """

    mesh: Any
    rows: str | None
    context: str
    heads: str | None

    @property
    def devices(self) -> Any:
        """The number of parts of a sequence."""
        return self.size(self.context)

    @property
    def axes(self) -> Any:
        """The names of the axes, without None."""
        names = self.rows, self.context, self.heads
        return tuple(name for name in names if name is not None)

    def size(self, axis: str | None) -> Any:
        """Returns the number of devices along an axis, 1 for None."""
        return 1 if axis is None else self.mesh.shape[axis]

    def axes_of_tokens(self, count: int) -> Any:
        """Returns the axes that split tokens, () if they do not divide them."""
        axes = tuple(x for x in (self.rows, self.context) if x is not None)
        parts = self.size(self.rows) * self.devices
        return () if count % parts else axes

    def axis_that_divides(self, axis: int, count: int) -> Any:
        """Returns the axis, or None if it does not divide a number."""
        return None if count % self.size(axis) else axis


def active_distribution() -> Any:
    """Returns the active distribution, or None if tensors are not sharded."""
    if keras.backend.backend() != "jax":
        return None
    return keras.distribution.distribution()


def splits_weights() -> bool:
    """Returns whether the active distribution may split weights."""
    return isinstance(active_distribution(), keras.distribution.ModelParallel)


def sequence_split() -> SequenceSplit | None:
    """Returns the `SequenceSplit` of the active layout, or None."""
    distribution = active_distribution()
    layout = distribution and distribution.get_tensor_layout(QUERY_PATH)
    if layout is None:
        return None
    split = SequenceSplit(layout.device_mesh.backend_mesh, *layout.axes[:3])
    return split if split.devices > 1 else None


def merge_tokens(tensor: TensorLike, axes: int = 2) -> Tensor:
    """Merges the axes of rows and tokens, (B, T, ...) into (B T, ...).

    The tokens of a device stay together. XLA would gather all of them to merge
    several rows whose tokens are split (as of JAX 0.10.2).

    Args:
        tensor: of at least that many axes.
        axes: int. Number of axes to merge. Default 2; only then can tokens be
            split.

    Returns:
        Tensor. `split_tokens` inverts it.
    """
    parts = _parts(tensor.shape[:axes])
    further = ops.shape(tensor)[axes:]
    if parts is None:
        return ops.reshape(tensor, (-1, *further))
    rows, columns, each_row, each_column = parts
    tensor = ops.reshape(
        tensor, (rows, each_row, columns, each_column, *further)
    )
    return ops.reshape(ops.swapaxes(tensor, 1, 2), (-1, *further))


def split_tokens(tensor: TensorLike, shape: tuple[int, ...]) -> Tensor:
    """Inverts `merge_tokens` for one number per token.

    Args:
        tensor: (B T,).
        shape: tuple of int or scalar tensors, the merged axes.

    Returns:
        Tensor of that shape.
    """
    parts = _parts(shape)
    if parts is None:
        return ops.reshape(tensor, shape)
    rows, columns, each_row, each_column = parts
    tensor = ops.reshape(tensor, (rows, columns, each_row, each_column))
    return ops.reshape(ops.swapaxes(tensor, 1, 2), shape)


def _parts(shape):
    """Returns the parts of rows and of tokens, and the sizes of a part."""
    split = sequence_split()
    if split is None or len(shape) != 2 or None in shape:
        return None
    rows, columns = split.size(split.rows), split.devices
    if shape[0] % rows or shape[1] % columns:
        return None
    return rows, columns, shape[0] // rows, shape[1] // columns


def row_shards() -> Any:
    """Returns the number of parts that the rows of a batch are split into."""
    distribution = active_distribution()
    if distribution is None:
        return 1
    mesh = distribution.device_mesh
    return mesh.shape[list(mesh.axis_names).index(distribution.batch_dim_name)]


def row_divisor() -> Any:
    """Returns what must divide the rows that this process passes to Keras."""
    distribution = active_distribution()
    if distribution is None:
        return 1
    return max(row_shards() // distribution.num_processes, 1)


def processes_share_rows() -> bool:
    """Returns whether all processes compute the rows of a batch together."""
    distribution = active_distribution()
    return distribution is not None and distribution.num_processes > 1


def shard_rows(tensor: TensorLike) -> Tensor:
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


def shard_cache(tensor: TensorLike) -> Tensor:
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
