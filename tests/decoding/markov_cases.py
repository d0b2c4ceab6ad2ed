"""A table of probabilities, sources for it, and what greedy search finds."""

import numpy as np

from tests.decoding.brute_force import greedy
from tests.decoding.markov import Markov

RNG = np.random.default_rng(0)
SOURCES = np.array([[3, 9], [4, 9], [5, 9], [3, 2], [8, 0]], "int32")


def markov(size=7, kinds=3, end_id=2):
    """A table on which pad and start are always the most likely tokens."""
    table = RNG.normal(size=(kinds, size, size))
    table[..., 0] += 6
    table[..., 1] += 5
    # The second kind of source never ends, the third one at once.
    table[1, :, end_id] -= 9
    table[2, :, end_id] += 4
    return Markov(table, end_id=end_id)


def by_brute_force(model, sources, max_new_tokens):
    ids = model.pad_id, model.start_id, model.end_id
    return [
        greedy(
            lambda prefix, s=s: model.log_probs(s, prefix), max_new_tokens, *ids
        )
        for s in sources
    ]
