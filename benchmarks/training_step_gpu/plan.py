"""Contestants and sizes of the training step benchmark on a GPU."""

from benchmarks.training_step import plan as training
from benchmarks.training_step.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Training step on a GPU"
DEVICE = "gpu"
ROUNDS = 5
STEPS = 20
# The size of the square matrices, by dtype.
PEAKS = {"bfloat16": 8192}

_MODEL = {
    "vocabulary": 8000,
    "layers": 3,
    "heads": 8,
    "width": 512,
    "inner": 2048,
}
# Importing a backend takes longer than a case.
_SHARED = {"process": "all", "device": "gpu"}
CASES = [
    {
        "name": dtype,
        "title": f"Batches of 64 x 128 tokens, {dtype}",
        "rows": 64,
        "length": 128,
        "dtype": dtype,
        **_MODEL,
        **_SHARED,
    }
    for dtype in ("bfloat16",)
]
QUICK_CASES = [
    {
        **training.QUICK_CASES[0],
        "name": dtype,
        "title": f"Tiny batches, {dtype}",
        "dtype": dtype,
        **_SHARED,
    }
    for dtype in ("bfloat16",)
]

NOTES = [
    "Width 512, 8 heads, feed-forward width 2,048, 3 + 3 layers, vocabulary "
    "8,000 with one matrix for source, target and output, dropout 0.1, Adam. "
    "Source and target have the same length; half of the rows are padded, by a "
    "quarter on average, and the padding is masked. Tokens/s counts the "
    "target, padding included.",
    "bfloat16: Keras models have the policy `mixed_bfloat16`; "
    "`torch.nn.Transformer` runs under `torch.autocast`.",
    "Keras models run in `fit` on NumPy batches, with Keras's default for "
    "`jit_compile`; `torch.nn.Transformer` runs in a hand-written loop on "
    "batches that are on the GPU already.",
    *training.NOTES[3:5],
    "Medians of ROUNDS measurements of 20 steps each, each contestant in its "
    "own process, taking turns; the time ends when the loss has been read. "
    "*Peak MiB*: memory that PyTorch allocated; JAX cannot reset its peak.",
]

CONTESTANTS = [
    one._replace(cases=())
    for one in training.CONTESTANTS
    if one.backend != "tensorflow" and one.name != "bare JAX"
]
