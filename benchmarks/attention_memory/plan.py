"""Contestants and sizes of the benchmark of attention memory."""

from benchmarks.attention import plan as attention
from benchmarks.attention.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Memory of a long sequence"
ROUNDS = 3
STEPS = 1
# One score matrix takes a gibibyte.
APART = True

CASES = [
    attention.case(1, 1, 16384, 64, STEPS, mask, True)
    for mask in ("none", "causal")
]
QUICK_CASES = [attention.case(1, 1, 16, 8, STEPS, "causal", True)]

NOTES = [
    *attention.NOTES[:4],
    "Medians of ROUNDS steps, each contestant in its own process; those of one "
    "backend take turns. MiB: peak memory of the process minus its memory "
    "before the first step. **Bold**: how many times as fast as Keras's layer "
    "on the same backend.",
]

CONTESTANTS = [
    one for one in attention.CONTESTANTS if "MultiHeadAttention" in one.name
]
