"""Who reads a text with a memory, who reads it again and again."""

from benchmarks.harness.contestant import Contestant
from benchmarks.segment_memory.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Reading with a memory"
ROUNDS = 3
STEPS = 1
# Only those of one backend are compared.
APART = True
PACKAGES = ("transformers",)


def case(memory, layers=4, heads=4, width=128, segment=64, rows=4, read=64):
    """Describes what is read: sizes, and how many tokens a row."""
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
    "Every token is scored with M tokens before it at least. *With a memory*: "
    "`TransformerXL` reads segments, each once, and carries its memory on. *A "
    "window a segment*: the same weights without a memory read M tokens more "
    "for each segment. *A window a token*: they read M tokens more for each "
    "token, as a model does that gives no token less context than another.",
    "Four rows at a time in all of them, float32, `predict_on_batch`; GPT-2 of "
    "transformers, of the same sizes, called as it is, with windows a token. "
    "It and the windows see M tokens; what is remembered has seen M more in "
    "each block below.",
    "Medians of ROUNDS measurements, in processes of their own; those of one "
    "backend take turns. MiB: the largest memory of the process over that "
    "before its first step. **Bold**: how many times as fast as a window a "
    "token on the same backend.",
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
