"""A Transformer that trains on padded, bucketed or packed batches."""

import keras
import numpy as np

from benchmarks.packing import task
from keras_attn.models import Transformer
from keras_attn.text import packed_batches, token_batches
from keras_attn.training import SequenceCrossentropy


def prepare(case, batches):
    """Returns a callable that runs epochs over the same pairs.

    Its loss is that of the untrained model, per token, which does not depend on
    the batches.

    Args:
        case: dict of sizes.
        batches: `"padded"`, `"buckets"` or `"packed"`.
    """
    keras.utils.set_random_seed(0)
    data = dataset(case, batches)
    model = Transformer(
        case["vocabulary"],
        num_layers=case["layers"],
        num_heads=case["heads"],
        hidden_dim=case["width"],
        intermediate_dim=case["inner"],
    )
    model.compile(
        keras.optimizers.Adam(1e-4), SequenceCrossentropy(label_smoothing=0.1)
    )
    loss = untrained_loss(model, data)

    def run(steps):
        model.fit(data, epochs=steps, shuffle=False, verbose=0)
        return loss

    return run


def dataset(case, batches):
    """Returns the `TokenDataset` of a contestant."""
    given = *task.texts(case), task.Ids(case["vocabulary"])
    size = {"tokens_per_batch": case["tokens_per_batch"]}
    if batches == "packed":
        return packed_batches(*given, max_length=case["row"], **size)
    return token_batches(
        *given, buckets=1 if batches == "padded" else 3, **size
    )


def untrained_loss(model, data):
    """Returns the mean cross-entropy of the labels of an epoch."""
    total = count = 0
    for inputs, labels in data:
        logits = keras.ops.convert_to_numpy(model(inputs)).astype("float64")
        logits -= logits.max(-1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        found = np.take_along_axis(logs, labels[..., None], -1)[..., 0]
        there = labels != task.PAD
        total -= found[there].sum()
        count += int(there.sum())
    return float(total / count)
