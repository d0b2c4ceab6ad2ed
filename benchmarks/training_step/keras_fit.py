"""Trains a Keras model with `fit` on batches in memory."""

import keras
import numpy as np

from benchmarks.training_step import task


class Ready(keras.utils.PyDataset):
    """Batches in memory, repeated.

    Args:
        data: nest of arrays, one item per batch: the inputs and labels.
        length: int. Batches per epoch.
    """

    def __init__(self, data, length):
        super().__init__()
        self._data = data
        self._length = length

    def __len__(self):
        return self._length

    def __getitem__(self, index):
        return batch(self._data, index)


def batch(data, index):
    """Returns the inputs and labels of a step."""
    return keras.tree.map_structure(lambda part: part[index % len(part)], data)


def ready(data, length):
    """Returns the batches in the fastest form for the backend."""
    batches = Ready(data, length)
    if keras.backend.backend() != "tensorflow":
        return batches
    import tensorflow as tf

    options = tf.data.Options()
    # The autotuning thread sleeps ever longer, and `fit` waits for it to end.
    options.autotune.enabled = False
    order = np.arange(length)
    dataset = tf.data.Dataset.from_tensor_slices(
        keras.tree.map_structure(lambda part: part[order % len(part)], data)
    )
    return dataset.with_options(options)


def runner(model, loss, data, optimizer="adam"):
    """Compiles a model and returns a callable that trains it.

    Args:
        model: keras.Model.
        loss: keras loss.
        data: nest of arrays, one item per batch: the inputs and labels.
        optimizer: str. The name of a Keras optimizer.

    Returns:
        Callable of a number of steps, which returns their mean loss.
    """
    optimizer = keras.optimizers.get(optimizer)
    optimizer.learning_rate = task.RATE
    model.compile(optimizer=optimizer, loss=loss)

    def run(steps):
        history = model.fit(ready(data, steps), shuffle=False, verbose=0)
        return history.history["loss"][-1]

    return run
