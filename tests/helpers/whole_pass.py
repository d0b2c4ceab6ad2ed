"""The next token's logits by whole passes, all of one shape."""

import numpy as np

from tests.helpers.arrays import to_numpy


def next_logits(model, row, length):
    """Logits behind the last token of a row, by a pass without a cache.

    The row is padded on the right with its own first token: what comes later
    changes nothing in a causal model, as its tests see. So rows of all lengths
    make JAX compile one set of programs.

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
