"""Logits of the next token from full passes of a single shape."""

import numpy as np

from tests.helpers.arrays import to_numpy


def next_logits(model, row, length):
    """Computes the logits after the last token of a row, without a cache.

    The row is padded on the right with its own first token. Later tokens change
    nothing in a causal model, which its other tests check. With one shape for
    all lengths, JAX compiles its programs once.

    Args:
        model: a causal language model, called on token ids.
        row: list of int, the tokens so far.
        length: int. At least that of the longest row of the test.

    Returns:
        Float (V,).
    """
    padded = [*row, *[row[0]] * (length - len(row))]
    logits = to_numpy(model(np.array([padded], "int32")))
    return logits[0, len(row) - 1].copy()
