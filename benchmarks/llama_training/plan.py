"""Contestants and sizes of the training step of a Llama-shaped model."""

from benchmarks.harness.contestant import Contestant
from benchmarks.llama_training.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Training step of a Llama-shaped model"
ROUNDS = 5
STEPS = 2
PACKAGES = ("transformers",)
MODEL = {
    "vocabulary": 8000,
    "layers": 6,
    "heads": 8,
    "key_value_heads": 2,
    "width": 512,
    "inner": 1376,
}
CASES = [
    {
        "name": f"{rows} x {length}",
        "title": f"Batches of {rows} x {length} tokens",
        "rows": rows,
        "length": length,
        **MODEL,
    }
    for rows, length in ((8, 128), (2, 512))
]
TINY = {
    "vocabulary": 60,
    "layers": 2,
    "heads": 4,
    "key_value_heads": 2,
    "width": 16,
    "inner": 24,
}
QUICK_CASES = [
    {"name": "tiny", "title": "Tiny batches", "rows": 2, "length": 8, **TINY}
]

SHAPE = (
    "6 layers, width 512, 8 heads, 2 key-value heads, SwiGLU of width 1,376 "
    "(8/3 of 512, rounded up to a multiple of 32), RMSNorm, rotary positions, "
    "vocabulary 8,000 with a matrix of its own for the output, float32. All "
    "contestants read the same random checkpoint."
)
NOTES = [
    SHAPE,
    "Next-token cross-entropy of random rows without padding, Adam, no "
    "dropout. The losses are equal, which a test checks.",
    "Keras models run in `fit`, with Keras's default for `jit_compile`; "
    "transformers in a hand-written loop.",
    "Medians of ROUNDS measurements of 2 steps each, each contestant in its "
    "own process, taking turns.",
]


def contestants(folder):
    """Lists the contestants whose modules are in a folder of benchmarks."""
    peers = {
        "torch": "transformers",
        "jax": "KerasHub on jax",
        "tensorflow": "KerasHub on tensorflow",
    }
    found = []
    for backend, peer in peers.items():
        name = f"keras_attn on {backend}"
        found += [
            Contestant(name, backend, f"{folder}.ours", against=peer),
            Contestant(
                f"KerasHub on {backend}",
                backend,
                f"{folder}.keras_hub",
                against="" if backend in peer else name,
                needs="keras_hub",
            ),
        ]
    found.append(
        Contestant(
            "transformers",
            "torch",
            f"{folder}.hugging_face",
            needs="transformers",
        )
    )
    return found


CONTESTANTS = contestants("benchmarks.llama_training")
