"""Batches of different sizes and lengths for the tests of the metrics."""

import keras
import numpy as np

SIZE = 9


def padded_batches(pad_id=0, seed=0):
    """Returns a list of (tokens, labels, weights) over `SIZE` classes.

    Batches differ in rows, length and fraction of padding, so that the mean of
    batch means is not the overall mean.
    """
    rng = np.random.default_rng(seed)
    batches = []
    for rows, length in ((4, 3), (2, 8), (1, 5)):
        labels = rng.integers(1, SIZE, (rows, length)).astype("int32")
        for row in range(rows):
            labels[row, max(1, length - 2 * row) :] = pad_id
        tokens = rng.integers(0, SIZE, (rows, length)).astype("int32")
        weights = rng.uniform(0.5, 2, (rows, length)).astype("float32")
        batches.append((tokens, labels, weights))
    return batches


def language_model(seed=1):
    """Returns a model from ids (B, T) of any length to logits (B, T, SIZE)."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(SIZE, SIZE, mask_zero=True),
        ]
    )
    rng = np.random.default_rng(seed)
    model.set_weights([3 * rng.normal(size=(SIZE, SIZE))])
    return model


class Batches(keras.utils.PyDataset):
    """A data set of given batches for `fit` and `evaluate`."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]
