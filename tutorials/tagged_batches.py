"""Batches of tagged sentences of like length, some words made unknown."""

import keras
import numpy as np
import word_table


class TaggedBatches(keras.utils.PyDataset):
    """Gives batches of (inputs, labels), in another order in every epoch.

    Rows of a batch are padded to one of few lengths, so that a compiled backend
    makes few programs. At each reading a word loses its id with a probability,
    and keeps its characters: a model that may never see a word must learn to
    tell from how it is spelt.

    Args:
        table: `WordTable`.
        sentences: list of lists of (word, tag).
        batch_size: int. Sentences in a batch.
        lengths: list of int, the lengths that batches are padded to.
        unknown: float in [0, 1). Probability that a word loses its id.
        seed: int.
    """

    def __init__(
        self, table, sentences, batch_size, lengths, unknown=0.0, seed=0
    ):
        super().__init__()
        self.unknown, self.seed, self.epoch = unknown, seed, 0
        self._batches = []
        lengths = [*lengths, max(map(len, sentences))]
        ordered = sorted(sentences, key=len)
        for first in range(0, len(ordered), batch_size):
            rows = ordered[first : first + batch_size]
            length = min(x for x in lengths if x >= len(rows[-1]))
            words = [[word for word, _ in row] for row in rows]
            self._batches.append(
                (table.encode(words, length), table.labels(rows, length))
            )
        self._order = np.arange(len(self._batches))
        self.on_epoch_end()

    def __len__(self):
        """Returns the number of batches."""
        return len(self._batches)

    def __getitem__(self, index):
        """Returns a batch."""
        inputs, labels = self._batches[self._order[index]]
        if not self.unknown:
            return inputs, labels
        draw = np.random.default_rng((self.seed, self.epoch, index))
        tokens = inputs["token_ids"]
        lost = draw.random(tokens.shape) < self.unknown
        lost &= tokens != word_table.PAD
        tokens = np.where(lost, word_table.UNKNOWN, tokens)
        return {**inputs, "token_ids": tokens}, labels

    def on_epoch_end(self):
        """Draws the order of the next epoch."""
        self.epoch += 1
        draw = np.random.default_rng((self.seed, self.epoch))
        self._order = draw.permutation(len(self._batches))
