"""Random numbers that belong to a row, not to its place in a batch."""

import hashlib

import numpy as np
from keras import tree


def uniform_rows(inputs, count, length, seed, pad_id):
    """Draws numbers for every row, from a stream of the row's own.

    The stream is found from the seed and from what the row holds without its
    padding. So a row draws the same alone and in any batch, on any backend,
    and another row draws something else.

    Args:
        inputs: nest of NumPy arrays with one row a source.
        count: int. n, sequences to draw for.
        length: int. L. A longer draw begins with the shorter one.
        seed: int >= 0.
        pad_id: int. The id that does not count.

    Returns:
        Float32 (B, n, L) in [0, 1).
    """
    leaves = tree.flatten(inputs)
    drawn = np.empty((len(leaves[0]), count, length), "float32")
    for row in range(len(drawn)):
        key = _fingerprint([leaf[row] for leaf in leaves], pad_id)
        for number in range(count):
            stream = np.random.default_rng([seed, key, number])
            drawn[row, number] = stream.random(length, "float32")
    return drawn


def _fingerprint(leaves, pad_id):
    digest = hashlib.blake2b(digest_size=16)
    for leaf in leaves:
        if leaf.dtype.kind in "iu":
            leaf = leaf[leaf != pad_id].astype("<i8")
        elif leaf.dtype.kind == "b":
            leaf = leaf[leaf]
        content = np.ascontiguousarray(leaf).tobytes()
        # With its length, so that two leaves cannot trade their ends.
        digest.update(len(content).to_bytes(8, "little") + content)
    return int.from_bytes(digest.digest(), "little")
