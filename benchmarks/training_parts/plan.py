"""Ablations of the training step."""

from benchmarks.harness.contestant import Contestant
from benchmarks.training_step import plan as step
from benchmarks.training_step.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Where the training step goes"
ROUNDS = 5
STEPS = 6
CASES = step.CASES[:1]
QUICK_CASES = step.QUICK_CASES

NOTES = [
    "The step of the table *Training step* (our default), and the same step "
    "without one of its parts; the difference is the cost of that part.",
    "*Without Adam*: plain gradient descent, which is one pass over the "
    "weights. *Without the vocabulary*: 256 classes instead of 8,000, that is, "
    "without the largest product, its loss and most of the optimizer's work.",
    "*Products alone*: only the matrix products of the step, with the same "
    "shapes, forward and backward.",
    "*Of peak* counts the products of the whole step in every row.",
    "Medians of ROUNDS measurements of 6 steps each, each contestant in its "
    "own process, taking turns.",
]

_OURS = "benchmarks.training_step.ours"


def _contestants():
    for backend in ("torch", "jax", "tensorflow"):
        whole = f"keras_attn on {backend}"
        yield Contestant(whole, backend, _OURS)
        for name, options in (
            ("without dropout", {"dropout": 0.0}),
            ("without Adam", {"optimizer": "sgd"}),
            ("without the vocabulary", {"vocabulary": 256}),
        ):
            yield Contestant(
                f"{name}, {backend}", backend, _OURS, options, whole
            )
        yield Contestant(
            f"products alone, {backend}",
            backend,
            "benchmarks.training_parts.products",
            against=whole,
        )


CONTESTANTS = list(_contestants())
