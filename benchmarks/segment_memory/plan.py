"""Contestants and sizes of the segment memory benchmark."""

from benchmarks.harness.contestant import Contestant
from benchmarks.segment_memory.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Reading with a memory"
ROUNDS = 3
STEPS = 1
# Contestants of different backends are not compared.
APART = True
PACKAGES = ("transformers",)


def case(memory, layers=4, heads=4, width=128, segment=64, rows=4, read=64):
    """Returns a case: sizes, and the number of tokens per row."""
    return {
        "name": f"memory {memory}",
        "title": f"{rows} x {read} tokens, {layers} blocks of width {width}, "
        f"segments of {segment}",
        "column": f"M = {memory:,}",
        "memory": memory,
        "layers": layers,
        "heads": heads,
        "width": width,
        "segment": segment,
        "rows": rows,
        "read": read,
    }


CASES = [case(memory) for memory in (64, 256, 1024)]
QUICK_CASES = [case(8, 1, 2, 16, 4, 2, 8)]

NOTES = [
    "Every token is scored with at least M tokens of context. *With a memory*: "
    "`TransformerXL` reads each segment once and carries its memory. *A window "
    "a segment*: the same weights without memory read M more tokens per "
    "segment. *A window a token*: they read M more tokens per token, which "
    "gives every token the same context.",
    "Batches of four rows, float32, `predict_on_batch`; GPT-2 of transformers "
    "has the same sizes, is called directly and reads one window per token. "
    "GPT-2 and the windows see M tokens of context; with a memory, each block "
    "adds M more.",
    "Medians of ROUNDS measurements, each contestant in its own process; those "
    "of one backend take turns. MiB: peak memory of the process minus its "
    "memory before the first step. **Bold**: how many times as fast as a "
    "window a token on the same backend.",
]

_OURS = "benchmarks.segment_memory.ours"


def _contestants():
    for backend in ("torch", "jax", "tensorflow"):
        again = f"a window a token, {backend}"
        yield Contestant(f"with a memory, {backend}", backend, _OURS, {}, again)
        yield Contestant(
            f"a window a segment, {backend}",
            backend,
            _OURS,
            {"way": "segment"},
            again,
        )
        yield Contestant(again, backend, _OURS, {"way": "token"})
    yield Contestant(
        "transformers GPT-2, a window a token",
        "torch",
        "benchmarks.segment_memory.gpt2",
        needs="transformers",
    )


CONTESTANTS = list(_contestants())
