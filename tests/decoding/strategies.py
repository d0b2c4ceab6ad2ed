"""Strategies of each kind, for tests that all of them must pass."""

import functools

import pytest

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling
from tests.helpers.cases import once

STRATEGIES = {
    "greedy": GreedySearch,
    "beam": functools.partial(BeamSearch, 3, 2),
    "wide": functools.partial(BeamSearch, 12, 4, early_stopping=True),
    "sample": functools.partial(Sampling, seed=4, num_return_sequences=2),
    "top": functools.partial(Sampling, 0.8, 5, 0.9, seed=4),
}
every_strategy = pytest.mark.parametrize("name", STRATEGIES)
# The three strategies on all backends, other settings on one backend.
every_kind = pytest.mark.parametrize(
    "name", ["greedy", "beam", "sample", *once(["wide", "top"])]
)
