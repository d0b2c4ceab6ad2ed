"""Contestants and sizes of the decoding of a Llama-shaped model."""

from benchmarks.llama_decoding.task import flops, tokens
from benchmarks.llama_training import plan as training

__all__ = ["flops", "tokens"]

TITLE = "Decoding of a Llama-shaped model"
ROUNDS = 5
STEPS = 1
PACKAGES = ("transformers",)
CASES = [
    {
        "name": f"batch {rows}",
        "title": f"Batch {rows}, greedy",
        "rows": rows,
        "length": 32,
        "new": 64,
        **training.MODEL,
    }
    for rows in (1, 32)
]
QUICK_CASES = [
    {
        "name": "tiny",
        "title": "Tiny batches",
        "rows": 2,
        "length": 5,
        "new": 4,
        **training.TINY,
    }
]

NOTES = [
    training.SHAPE,
    "Greedy search, 64 tokens after prompts of 32. There is no end token. All "
    "contestants generate the same tokens, which a test checks.",
    "keras_attn: `model.generate(prompts, 64)` of `GPT`. transformers: "
    "`LlamaForCausalLM.generate`. KerasHub: `Llama3CausalLM.generate` with its "
    "`GreedySampler`, with Keras's default for `jit_compile`.",
    "Medians of ROUNDS measurements of one batch, each contestant in its own "
    "process, taking turns.",
]
CONTESTANTS = training.contestants("benchmarks.llama_decoding")
