"""Batches of pictures with captions, some words of which are misread."""

import numpy as np
from length_batches import LengthBatches
from pair_table import UNKNOWN, words_of


def caption_batches(
    table, pictures, captions, batch_size, slip=0.0, kinds=None, seed=0
):
    """Gives batches of ((pictures, words so far), words), shuffled anew.

    At each reading one of a picture's captions is drawn. And some of the words
    that the decoder reads, never of those that it shall say, are drawn anew, so
    that it does not rely on them more than on the picture.

    Args:
        table: `PairTable`, whose target words are those of the captions.
        pictures: uint8 (N, H, W, 3).
        captions: list of N tuples of str, what may be said of a picture.
        batch_size: int.
        slip: float in [0, 1). Share of the words read that are drawn anew.
        kinds: list of collections of str: a word is taken for another one of
            its kind, and those of no kind are always read right. Default: all
            words are of one kind.
        seed: int.

    Returns:
        `LengthBatches`, all of one length.
    """
    longest = 1 + max(len(words_of(c)) for part in captions for c in part)
    batch_size = min(batch_size, len(captions))
    words = {word: i for i, word in enumerate(table.target_words, UNKNOWN + 1)}
    kinds = [
        np.array([words[word] for word in kind if word in words], "int32")
        for kind in ([words] if kinds is None else kinds)
    ]

    def make(rows, length, draw):
        said = [
            captions[row][draw.integers(len(captions[row]))] for row in rows
        ]
        reads, says = table.targets(said, length)
        if slip:
            reads = _with_slips(reads, slip, kinds, draw)
        return (pictures[rows], reads), says

    rows = list(range(len(captions)))
    return LengthBatches(rows, [longest] * len(rows), batch_size, make, 1, seed)


def _with_slips(reads, share, kinds, draw):
    slips = draw.random(reads.shape) < share
    misread = reads.copy()
    for kind in kinds:
        anew = np.isin(reads, kind) & slips
        misread[anew] = draw.choice(kind, anew.sum())
    return misread
