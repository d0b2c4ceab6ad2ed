"""Batches of tagged sentences, some words of which are made unknown."""

import numpy as np
import word_table
from length_batches import LengthBatches


def tagged_batches(
    table, sentences, batch_size, unknown=0.0, buckets=4, seed=0
):
    """Gives batches of (inputs, labels), in another order in every epoch.

    At each reading a word loses its id with a probability: who will meet words
    that were never seen must learn to tell from how they are spelt. Half of
    these lose their characters as well: then only the neighbours tell.

    Args:
        table: `WordTable`.
        sentences: list of lists of (word, tag).
        batch_size: int. Sentences in a batch.
        unknown: float in [0, 1). Probability that a word loses its id.
        buckets: int. Lengths that batches are padded to, at most.
        seed: int.

    Returns:
        `LengthBatches`: dicts of int32 (B, T) and (B, T, 20), int32 (B, T).
    """

    def make(rows, length, draw):
        words = [[word for word, _ in row] for row in rows]
        inputs = table.encode(words, length)
        if unknown:
            inputs = _with_unknown(inputs, unknown, draw)
        return inputs, table.labels(rows, length)

    sizes = list(map(len, sentences))
    return LengthBatches(sentences, sizes, batch_size, make, buckets, seed)


def _with_unknown(inputs, share, draw):
    tokens, characters = inputs["token_ids"], inputs["character_ids"]
    chance = np.where(tokens != word_table.PAD, draw.random(tokens.shape), 1)
    blank = (chance < share / 2)[..., None] & (characters != word_table.PAD)
    return {
        "token_ids": np.where(chance < share, word_table.UNKNOWN, tokens),
        "character_ids": np.where(blank, word_table.UNKNOWN, characters),
    }
