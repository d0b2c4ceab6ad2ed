"""How a Keras model is run: in `fit`, on batches that are ready."""

import keras
import numpy as np

from benchmarks.training_step import task


class Ready(keras.utils.PyDataset):
    """Batches in memory, over and over.

    Args:
        data: three int32 (count, rows, length).
        length: int. Batches in an epoch.
    """

    def __init__(self, data, length):
        super().__init__()
        self._data = data
        self._length = length

    def __len__(self):
        return self._length

    def __getitem__(self, index):
        sources, targets, labels = (
            part[index % len(part)] for part in self._data
        )
        return (sources, targets), labels


def ready(data, length):
    """Returns the batches in the form that the backend reads fastest."""
    batches = Ready(data, length)
    if keras.backend.backend() != "tensorflow":
        return batches
    import tensorflow as tf

    options = tf.data.Options()
    # Its thread sleeps longer and longer, and the end of `fit` waits for it.
    options.autotune.enabled = False
    order = np.arange(length) % len(data[0])
    sources, targets, labels = (part[order] for part in data)
    dataset = tf.data.Dataset.from_tensor_slices(((sources, targets), labels))
    return dataset.with_options(options)


def runner(model, loss, case, optimizer="adam"):
    """Compiles a model and returns a callable that trains it for some steps.

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
