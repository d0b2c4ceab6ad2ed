"""Batches of misspelt words and their corrections, new ones in every epoch."""

import random

import numpy as np
from length_batches import LengthBatches
from letters import PAD, START
from spelling_noise import misspell

# Letters that a misspelling may be longer than its word, in a batch.
ROOM = 2


def spelling_batches(
    letters, pairs=(), words=(), batch_size=64, buckets=3, unchanged=0.1, seed=0
):
    """Gives batches of ((source, target), labels) of words of like length.

    A pair stays as it is. A word is misspelt anew in each epoch, or, with a
    probability, left as it is: a model that only ever saw wrong words would
    change the right ones as well.

    Args:
        letters: `Letters`.
        pairs: list of (wrong, right), such as were met.
        words: list of str, right words that the noise model misspells. Those
            of one or two letters it leaves as they are.
        batch_size: int. B, words in a batch.
        buckets: int. Lengths that batches may have, at most.
        unchanged: float in [0, 1]. Probability that a word stays right.
        seed: int.

    Returns:
        `LengthBatches` of int32 (B, T + 2), (B, T), and labels (B, T).

    Raises:
        ValueError: there is neither a pair nor a word.
    """
    # None: to be misspelt.
    entries = [*pairs, *((None, word) for word in words)]
    if not entries:
        raise ValueError(
            "`pairs` or `words` must hold something. Received: neither"
        )
    known = frozenset(right for _, right in entries)

    def misspelt(entry, draw):
        wrong, right = entry
        if wrong is None:
            kept = len(right) < 3 or draw.random() < unchanged
            wrong = right if kept else misspell(right, draw, known)
        return wrong, right

    def make(rows, length, draw):
        draw = random.Random(int(draw.integers(2**62)))
        wrongs, rights = zip(
            *(misspelt(row, draw) for row in rows), strict=True
        )
        source = letters.rows(wrongs, length + ROOM)
        labels = letters.rows(rights, length)
        target = np.roll(labels, 1, axis=1)
        target[:, 0] = START
        # Behind the end the decoder reads padding.
        target[:, 1:] = np.where(labels[:, 1:] == PAD, PAD, target[:, 1:])
        return (source, target), labels

    sizes = list(map(_size, entries))
    return LengthBatches(entries, sizes, batch_size, make, buckets, seed)


def _size(entry):
    """Returns how many ids an entry needs on the right side, at least."""
    wrong, right = entry
    return max(len(right), len(wrong or "") - ROOM) + 1
