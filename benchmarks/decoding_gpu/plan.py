"""Contestants and sizes of the decoding benchmark on a GPU."""

from benchmarks.decoding import plan as decoding
from benchmarks.decoding.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Decoding on a GPU"
DEVICE = "gpu"
ROUNDS = 5
STEPS = 1
PACKAGES = ("transformers",)
# Decoding waits for memory and for kernels to start, not for products.
PEAKS = {}

# Importing a backend takes longer than a case.
_SHARED = {"process": "all", "device": "gpu"}
CASES = [
    {**case, **_SHARED}
    for name in ("batch 32, greedy", "batch 32, beam 4", "batch 1, greedy")
    for case in decoding.CASES
    if case["name"] == name
]
QUICK_CASES = [{**case, **_SHARED} for case in decoding.QUICK_CASES]

NOTES = [
    *decoding.NOTES[:1],
    "Exactly 64 new tokens per sentence: the logits have a bias, as in Marian, "
    "which is -1e9 for the pad, start and end tokens. All contestants still "
    "check for the end token. Tokens/s counts the best sequence of each "
    "sentence, not its other hypotheses.",
    "keras_attn: `model.generate(sources, max_new_tokens=64, strategy=...)`. "
    "transformers: `MarianMTModel.generate`.",
    "*Bare*: hand-written loops for this model, with the same cache, end of "
    "sequences and finished hypotheses; on PyTorch in eager mode, on JAX one "
    "compiled program.",
    "Medians of ROUNDS measurements of 1 batch of 32 or of 4 batches of one "
    "sentence, each contestant in its own process, taking turns; the time ends "
    "when the tokens have been read. *Peak MiB*: memory that PyTorch "
    "allocated; JAX cannot reset its peak.",
]

CONTESTANTS = [
    one
    for one in decoding.CONTESTANTS
    if one.backend != "tensorflow" and one.needs in ("", "transformers")
]
