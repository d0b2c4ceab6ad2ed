"""Trains a Keras model with `fit` on batches in memory."""

import keras
import numpy as np

from benchmarks.training_step import task


class Ready(keras.utils.PyDataset):
    """Batches in memory, repeated.

    Args:
        data: three int32 (count, rows, length).
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
    sources, targets, labels = (part[index % len(part)] for part in data)
    return (sources, targets), labels


def ready(data, length):
    """Returns the batches in the fastest form for the backend."""
    batches = Ready(data, length)
    if keras.backend.backend() != "tensorflow":
        return batches
    import tensorflow as tf

    options = tf.data.Options()
    # The autotuning thread sleeps ever longer, and `fit` waits for it to end.
    options.autotune.enabled = False
    order = np.arange(length) % len(data[0])
    sources, targets, labels = (part[order] for part in data)
    dataset = tf.data.Dataset.from_tensor_slices(((sources, targets), labels))
    return dataset.with_options(options)


def runner(model, loss, case, optimizer="adam"):
    """Compiles a model and returns a callable that trains it.

    Args:
        model: keras.Model of (source_ids, target_ids).
        loss: keras loss.
        case: dict of sizes.
        optimizer: str. The name of a Keras optimizer.

    Returns:
        Callable of a number of steps, which returns their mean loss.
    """
    optimizer = keras.optimizers.get(optimizer)
    optimizer.learning_rate = task.RATE
    model.compile(optimizer=optimizer, loss=loss)
    data = task.batches(case)

    def run(steps):
        history = model.fit(ready(data, steps), shuffle=False, verbose=0)
        return history.history["loss"][-1]

    return run
