"""Trains on one device and on two replicas; prints the results as JSON.

A program of its own, because TensorFlow splits a CPU into virtual devices only
before it is first used.
"""

import collections
import contextlib
import json

import keras
import numpy as np
import tensorflow as tf

from keras_attn.models import GPT
from keras_attn.training import Perplexity, SequenceCrossentropy, TokenAccuracy

SIZE, LENGTH = 7, 3
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


def lookups(names):
    """A model with an output for each loss, which share no weights."""
    ids = keras.Input((LENGTH,), dtype="int32")
    start = keras.initializers.RandomUniform(seed=0)
    return keras.Model(
        ids,
        {
            name: keras.layers.Embedding(SIZE, SIZE, start, name=name)(ids)
            for name in names
        },
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


def trained(strategy, losses, batches, padding=True):
    """Returns logs, results and weights of a training.

    Args:
        strategy: of TensorFlow, or None for one device.
        losses: a loss for a GPT, or a dict with one for each output.
        batches: list of pairs, the rows and the batch size of each `fit`.
        padding: bool. Default True.
    """
    named = isinstance(losses, dict)

    def for_outputs(make):
        return {name: make() for name in losses} if named else make()

    scope = strategy.scope() if strategy else contextlib.nullcontext()
    with scope:
        keras.utils.set_random_seed(0)
        model = lookups(losses) if named else gpt()
        model.compile(
            keras.optimizers.SGD(0.5) if named else keras.optimizers.Adam(0.01),
            losses,
            metrics=for_outputs(lambda: [TokenAccuracy()]),
            weighted_metrics=for_outputs(lambda: [Perplexity()])
            if padding
            else None,
        )
    logs = collections.defaultdict(list)
    for rows, batch_size in batches:
        ids, labels, weights = data(rows)
        if not padding:
            labels = ids[:, ::-1]
        x = ids if named else {"token_ids": ids, "padding_mask": ids > 1}
        y = for_outputs(lambda labels=labels: labels)
        arguments = {"batch_size": batch_size, "verbose": 0}
        if padding:
            arguments["sample_weight"] = for_outputs(lambda w=weights: w)
        history = model.fit(x, y, epochs=2, shuffle=False, **arguments)
        for name, values in history.history.items():
            logs[name] += values
    results = model.evaluate(x, y, return_dict=True, **arguments)
    return {
        "history": logs,
        "results": results,
        "weights": [w.tolist() for w in model.get_weights()],
    }


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    losses = {
        "mean": SequenceCrossentropy(0.1),
        "sum": SequenceCrossentropy(reduction="sum"),
        "mean_with_sample_weight": SequenceCrossentropy(
            reduction="mean_with_sample_weight", class_weight={1: 3.0, 4: 0.5}
        ),
    }
    cases = {
        "losses": (losses, [(UNEVEN, 4), (EMPTY, 4)]),
        # A first batch of 3 rows, and a mask, have no mean over the replicas.
        "model": (SequenceCrossentropy(), [(UNEVEN, 3)]),
    }
    found = {
        name: [trained(s, *case) for s in (None, strategy)]
        for name, case in cases.items()
    }
    losses = {
        "keras": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "ours": SequenceCrossentropy(pad_id=-1),
    }
    both = trained(strategy, losses, [(EVEN, 4)], padding=False)
    found["keras"] = [
        {
            "history": of_output(both["history"], name),
            "results": of_output(both["results"], name),
            "weights": both["weights"][index : index + 1],
        }
        for index, name in enumerate(losses)
    ]
    print(json.dumps(found))


def of_output(logs, name):
    """Returns the loss and the metrics of an output of a model."""
    start = f"{name}_"
    return {
        key.removeprefix(start): value
        for key, value in logs.items()
        if key.startswith(start)
    }


if __name__ == "__main__":
    main()
