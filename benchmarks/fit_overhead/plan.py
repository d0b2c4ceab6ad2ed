"""Contestants and sizes of the table on the overhead of `fit`."""

from benchmarks.harness.contestant import Contestant
from benchmarks.training_step import plan as step
from benchmarks.training_step.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Overhead of `fit` with a small model"
ROUNDS = 9
STEPS = 40
HOST_READS = True
CASES = [
    {
        "name": "16 x 16",
        "title": "Batches of 16 x 16 tokens",
        "rows": 16,
        "length": 16,
        "vocabulary": 1000,
        "layers": 2,
        "heads": 4,
        "width": 128,
        "inner": 512,
    }
]
QUICK_CASES = step.QUICK_CASES

NOTES = [
    "A Transformer of width 128, 4 heads, feed-forward width 512, 2 + 2 "
    "layers, vocabulary 1,000, dropout 0.1, label smoothing 0.1, Adam, "
    "float32: a step so short that what `fit` adds to it counts. Source and "
    "target have the same length; half of the rows are padded.",
    "*Without `fit`*: a loop that calls the same model, loss and optimizer. On "
    "JAX and TensorFlow a step is one compiled program, so there is no such "
    "loop.",
    "*Host reads*: how often a step waits for a number from the accelerator, "
    "counted by `keras_attn.testing.host_reads` after the measurement. On JAX "
    "and TensorFlow, Keras reads the logs for its callbacks after each step, "
    "and on TensorFlow whether there is a next batch (as of Keras 3.15.1); "
    "inside a step nothing is read.",
    "Medians of ROUNDS measurements of 40 steps each, each contestant in its "
    "own process, taking turns.",
]

_OURS = "benchmarks.training_step.ours"
_LOOP = "without `fit`, torch"
CONTESTANTS = [
    Contestant("keras_attn on torch", "torch", _OURS, against=_LOOP),
    Contestant(_LOOP, "torch", "benchmarks.fit_overhead.loop"),
    Contestant("keras_attn on jax", "jax", _OURS),
    Contestant("keras_attn on tensorflow", "tensorflow", _OURS),
]
