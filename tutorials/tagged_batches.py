"""Batches of tagged sentences of like length, some words made unknown."""

import keras
import numpy as np
import word_table


class TaggedBatches(keras.utils.PyDataset):
    """Gives batches of (inputs, labels), in another order in every epoch.

    Rows of a batch are padded to one of few lengths, so that a compiled backend
    makes few programs. At each reading a word loses its id with a probability:
    who will meet words that were never seen must learn to tell from how they
    are spelt. Half of these lose their characters as well: then only the
    neighbours tell.

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
        self.unknown, self.seed = unknown, seed
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
        self.set_epoch(0)

    def __len__(self):
        """Returns the number of batches."""
        return len(self._batches)

    def __getitem__(self, index):
        """Returns a batch."""
        inputs, labels = self._batches[self._order[index]]
        if not self.unknown:
            return inputs, labels
        draw = np.random.default_rng((self.seed, self.epoch, index))
        tokens, characters = inputs["token_ids"], inputs["character_ids"]
        chance = np.where(
            tokens != word_table.PAD, draw.random(tokens.shape), 1
        )
        lost = chance < self.unknown
        blank = (chance < self.unknown / 2)[..., None] & (
            characters != word_table.PAD
        )
        return {
            "token_ids": np.where(lost, word_table.UNKNOWN, tokens),
            "character_ids": np.where(blank, word_table.UNKNOWN, characters),
        }, labels

    def on_epoch_end(self):
        """Goes on to the next epoch."""
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch):
        """Draws the order of an epoch, int >= 0."""
        self.epoch = epoch
        draw = np.random.default_rng((self.seed, epoch))
        self._order = draw.permutation(len(self._batches))
