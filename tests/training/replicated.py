"""Trains on one device and on two replicas; prints the results as JSON.

A program of its own, because TensorFlow splits a CPU into virtual devices only
before it is first used.
"""

import contextlib
import json

import keras
import numpy as np
import tensorflow as tf

from keras_attn.models import GPT
from keras_attn.training import Perplexity, SequenceCrossentropy, TokenAccuracy

SIZE, LENGTH, BATCH = 7, 3, 4
# With batches of 4, the last batch gives the replicas 2 and 1 rows, or 1 and 0.
UNEVEN, EMPTY, EVEN = 7, 5, 8


def data(rows):
    rng = np.random.default_rng(0)
    ids = rng.integers(1, SIZE, (rows, LENGTH)).astype("int32")
    labels = rng.integers(1, SIZE, (rows, LENGTH)).astype("int32")
    for row in range(rows):
        labels[row, 1 + row % LENGTH :] = 0
    weights = rng.uniform(0.5, 2, (rows, LENGTH)).astype("float32")
    return ids, labels, weights


def plain():
    return keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32"),
            keras.layers.Embedding(SIZE, SIZE),
        ]
    )


def gpt():
    return GPT(
        SIZE,
        num_layers=1,
        num_heads=1,
        hidden_dim=4,
        intermediate_dim=4,
        max_sequence_length=LENGTH,
        dropout=0.0,
        attention_dropout=0.0,
    )


def trained(strategy, make, loss, rows, batch_size=BATCH, padding=True):
    """Returns logs, results and weights of a training."""
    ids, labels, weights = data(rows)
    if not padding:
        labels = ids[:, ::-1]
    scope = strategy.scope() if strategy else contextlib.nullcontext()
    with scope:
        keras.utils.set_random_seed(0)
        model = make()
        model.compile(
            keras.optimizers.Adam(0.01)
            if make is gpt
            else keras.optimizers.SGD(0.5),
            loss,
            metrics=[TokenAccuracy()],
            weighted_metrics=[Perplexity()] if padding else None,
        )
    x = ids if make is plain else {"token_ids": ids, "padding_mask": ids > 1}
    arguments = {"batch_size": batch_size, "verbose": 0}
    if padding:
        arguments["sample_weight"] = weights
    epochs = 3 if make is gpt else 2
    history = model.fit(x, labels, epochs=epochs, shuffle=False, **arguments)
    results = model.evaluate(x, labels, return_dict=True, **arguments)
    return {
        "history": history.history,
        "results": results,
        "weights": [w.tolist() for w in model.get_weights()],
    }


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    class_weight = {1: 3.0, 4: 0.5}
    cases = {
        "mean": (plain, SequenceCrossentropy(0.1), UNEVEN),
        "sum": (plain, SequenceCrossentropy(reduction="sum"), UNEVEN),
        "mean_with_sample_weight": (
            plain,
            SequenceCrossentropy(
                reduction="mean_with_sample_weight", class_weight=class_weight
            ),
            EMPTY,
        ),
        # A first batch of 3 rows, and a mask, have no mean over the replicas.
        "model": (gpt, SequenceCrossentropy(), UNEVEN, 3),
    }
    found = {
        name: [trained(s, *case) for s in (None, strategy)]
        for name, case in cases.items()
    }
    losses = (
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        SequenceCrossentropy(pad_id=-1),
    )
    found["keras"] = [
        trained(strategy, plain, loss, EVEN, padding=False) for loss in losses
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
