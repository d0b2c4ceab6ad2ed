"""Our training step with one thing left out at a time."""

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
    "with one thing left out: what is saved is what that thing costs.",
    "*Without Adam*: plain gradient descent, which is one pass over the "
    "weights. *Without the vocabulary*: 256 classes and not 8,000, so without "
    "the largest product, the loss over it and most of the optimizer's work.",
    "*Products alone*: the matrix products of the step and nothing else, of "
    "the same shapes, forward and backward.",
    "*Of peak* counts the products of the whole step in every line.",
    "Medians of ROUNDS measurements of 6 steps each, in processes of their "
    "own that take turns.",
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
