"""A table model, sources for it, and its brute-force greedy results."""

import numpy as np

from tests.decoding.markov import Markov
from tests.helpers.brute_force import greedy

RNG = np.random.default_rng(0)
SOURCES = np.array([[3, 9], [4, 9], [5, 9], [3, 2], [8, 0]], "int32")


def markov(size=7, kinds=3, end_id=2):
    """Returns a model whose most likely tokens are always pad and start."""
    table = RNG.normal(size=(kinds, size, size))
    table[..., 0] += 6
    table[..., 1] += 5
    # The second kind of source never ends, the third one immediately.
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
