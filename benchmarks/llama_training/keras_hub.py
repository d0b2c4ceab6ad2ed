"""`keras_hub.models.Llama3CausalLM`."""

import keras
import keras_hub
import numpy as np

from benchmarks.llama_training import checkpoint, task


def prepare(case):
    """Returns a callable that runs training steps."""
    built = model(case)
    built.compile(
        optimizer=keras.optimizers.Adam(task.RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=None,
    )
    inputs, labels = task.batches(case)

    def run(steps):
        # Its `fit` takes arrays and makes a `tf.data.Dataset` of them.
        order = np.arange(steps) % len(inputs)
        ids, targets = (
            np.concatenate(part[order]) for part in (inputs, labels)
        )
        history = built.fit(
            {"token_ids": ids, "padding_mask": np.ones_like(ids)},
            targets,
            batch_size=case["rows"],
            shuffle=False,
            verbose=0,
        )
        return history.history["loss"][-1]

    return run


def model(case, seed=0):
    """Returns a model that has read the checkpoint."""
    with checkpoint.write(case, seed) as folder:
        backbone = keras_hub.models.Llama3Backbone.from_preset(folder)
    return keras_hub.models.Llama3CausalLM(backbone, preprocessor=None)
