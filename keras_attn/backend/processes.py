"""The processes of one training: `jax`, `torch` or `tf.distribute`."""

import functools

import keras
import numpy as np

from keras_attn.typing import TensorLike

if keras.backend.backend() == "jax":
    import jax
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf
elif keras.backend.backend() == "torch":
    import torch.distributed


def process_index() -> int:
    """Returns the index of this process among those of one training.

    On JAX, the processes are those of `jax.distributed`; on PyTorch, those of
    the default group of `torch.distributed`; on TensorFlow, those of the
    current `MultiWorkerMirroredStrategy`.

    Returns:
        int, from 0; 0 if there is one process.
    """
    return _place()[0]


def process_count() -> int:
    """Returns the number of processes of one training.

    Returns:
        int, at least 1.
    """
    return _place()[1]


def gather_texts(text: str) -> list[str]:
    """Returns a text of every process; all processes must call it.

    It waits for the others, up to the time limit of the engine's collectives.

    Args:
        text: str.

    Returns:
        List of str, by process index.
    """
    if process_count() == 1:
        return [text]
    if keras.backend.backend() == "torch":
        texts = [None] * process_count()
        torch.distributed.all_gather_object(texts, text)
        return texts
    content = np.frombuffer(text.encode("utf-8"), "uint8").astype("int32")
    sizes = _gather(np.array([len(content)], "int32"))[:, 0]
    content = np.pad(content, (0, sizes.max() - len(content)))
    return [
        row[:size].astype("uint8").tobytes().decode("utf-8")
        for row, size in zip(_gather(content), sizes, strict=True)
    ]


def to_numpy(tensor: TensorLike) -> np.ndarray:
    """Converts a tensor to a NumPy array, from all processes if necessary.

    Args:
        tensor: tensor or value of a variable. On JAX it may be divided between
            processes, which all must call this function then. On TensorFlow it
            may have a copy on each replica.

    Returns:
        NumPy array.
    """
    if (
        keras.backend.backend() == "jax"
        and isinstance(tensor, jax.Array)
        and not tensor.is_fully_addressable
        and not tensor.is_fully_replicated
    ):
        return _gather_on_jax(tensor, tiled=True)
    if keras.backend.backend() == "tensorflow" and isinstance(
        tensor, tf.distribute.DistributedValues
    ):
        return np.asarray(tensor.numpy())
    return keras.ops.convert_to_numpy(tensor)


def _place():
    """Returns the index of this process and the number of processes."""
    name = keras.backend.backend()
    if name == "jax":
        return jax.process_index(), jax.process_count()
    if name == "torch":
        group = torch.distributed
        if not group.is_available() or not group.is_initialized():
            return 0, 1
        return group.get_rank(), group.get_world_size()
    if name == "tensorflow":
        return _place_in_cluster()
    return 0, 1


def _place_in_cluster():
    resolver = tf.distribute.get_strategy().cluster_resolver
    jobs = resolver.cluster_spec().as_dict() if resolver else {}
    # Other jobs, such as evaluators, do not train.
    names = [name for name in ("chief", "worker") if name in jobs]
    if resolver is None or resolver.task_type not in names:
        return 0, 1
    before = names[: names.index(resolver.task_type)]
    sizes = {name: len(jobs[name]) for name in names}
    index = sum(sizes[name] for name in before) + resolver.task_id
    return index, sum(sizes.values())


def _gather(row):
    """Returns the int32 rows of all processes, stacked."""
    if keras.backend.backend() == "jax":
        return _gather_on_jax(row)
    # In a cluster of TensorFlow, all processes have equally many replicas.
    strategy, (index, count) = tf.distribute.get_strategy(), _place()
    replicas = strategy.num_replicas_in_sync // count
    table = np.zeros((count, *row.shape), "int32")
    table[index] = row
    values = strategy.experimental_distribute_values_from_function(
        functools.partial(_of_replica, table, replicas)
    )
    return strategy.reduce("SUM", values, axis=None).numpy()


def _of_replica(table, replicas, context):
    first = context.replica_id_in_sync_group % replicas == 0
    return tf.constant(table if first else np.zeros_like(table))


def _gather_on_jax(array, tiled=False):
    # Here, because it takes long to import. Experimental, as of JAX 0.10.2.
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(array, tiled=tiled))
