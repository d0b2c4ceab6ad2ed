"""A table of contestants that import no backend."""

import keras

from benchmarks.harness.contestant import Contestant

TITLE = "Counting"
NOTES = ()
ROUNDS = 1
STEPS = 2
PEAKS = {}
CASES = [{"name": "x", "title": "x", "column": "x"}]
QUICK_CASES = CASES
_PEER = Contestant(
    "counting",
    keras.backend.backend(),
    "tests.benchmarks.counting",
    {"size": 4},
)
CONTESTANTS = [
    _PEER._replace(name="keras_attn, counting", against="counting"),
    _PEER,
]


def flops(case):
    """Returns the operations of a step."""
    return 1


def tokens(case):
    """Returns the tokens of a step."""
    return 1
