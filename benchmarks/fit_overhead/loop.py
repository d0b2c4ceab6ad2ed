"""The same Keras model, loss and optimizer on PyTorch, without `fit`."""

import keras
import torch

from benchmarks.training_step import keras_fit, ours, task


def prepare(case, **options):
    """Returns a callable that runs training steps."""
    model, loss = ours.make(case, **options)
    optimizer = keras.optimizers.Adam(task.RATE)
    data = task.examples(case)

    def run(steps):
        total = 0.0
        for index in range(steps):
            inputs, labels = keras_fit.batch(data, index)
            inputs = [torch.from_numpy(ids) for ids in inputs]
            value = loss(
                torch.from_numpy(labels), model(tuple(inputs), training=True)
            )
            model.zero_grad()
            value.backward()
            weights = model.trainable_weights
            with torch.no_grad():
                optimizer.apply([w.value.grad for w in weights], weights)
            total = total + value.detach()
        return float(total) / steps

    return run
