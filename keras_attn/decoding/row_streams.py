"""Random numbers that depend on a row, not on its batch."""

import hashlib

import numpy as np
from keras import tree

from keras_attn.typing import Nest, Tensor


def uniform_rows(
    inputs: Nest, count: int, length: int, seed: int, pad_id: int
) -> Tensor:
    """Draws uniform numbers for every row from its own random stream.

    The stream depends on the seed and on the row's content without padding. A
    row thus draws the same numbers alone and in any batch, on any backend, and
    different rows draw different numbers.

    Args:
        inputs: nest of NumPy arrays with one row per source.
        count: int. n, sequences to draw for.
        length: int. L. A longer draw starts with the numbers of a shorter one.
        seed: int >= 0.
        pad_id: int. Ids that are ignored.

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
        # The length separates leaves: (1, 2), (3) must differ from (1), (2, 3).
        digest.update(len(content).to_bytes(8, "little") + content)
    return int.from_bytes(digest.digest(), "little")
