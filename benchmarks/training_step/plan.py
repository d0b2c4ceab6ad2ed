"""Contestants and sizes of the training step benchmark."""

from benchmarks.harness.contestant import Contestant
from benchmarks.training_step.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Training step of an encoder-decoder Transformer"
ROUNDS = 5
STEPS = 6

_MODEL = {
    "vocabulary": 8000,
    "layers": 3,
    "heads": 4,
    "width": 256,
    "inner": 1024,
}
CASES = [
    {
        "name": f"{rows} x {length}",
        "title": f"Batches of {rows} x {length} tokens",
        "rows": rows,
        "length": length,
        **_MODEL,
    }
    for rows, length in ((32, 32), (16, 128))
]
QUICK_CASES = [
    {
        "name": "tiny",
        "title": "Tiny batches",
        "rows": 4,
        "length": 8,
        "vocabulary": 50,
        "layers": 1,
        "heads": 2,
        "width": 16,
        "inner": 32,
    }
]

NOTES = [
    "Width 256, 4 heads, feed-forward width 1,024, 3 + 3 layers, vocabulary "
    "8,000 with one matrix for source, target and output, dropout 0.1, Adam, "
    "float32. Source and target have the same length; half of the rows are "
    "padded, by a quarter on average, and the padding is masked. Tokens/s "
    "counts the target, padding included.",
    "On TensorFlow the batches come from `tf.data` without autotuning, whose "
    "thread can delay the end of `fit` by as long as `fit` took.",
    "Keras models run in `fit`, with Keras's default for `jit_compile`; "
    "`torch.nn.Transformer` and bare JAX run in a hand-written loop.",
    "All contestants apply dropout to embeddings and sublayer outputs. "
    "KerasHub and bare JAX also apply it to attention weights, "
    "`torch.nn.Transformer` to these and between the feed-forward layers; so "
    "does the row of keras_attn that is compared with each. *Our default* does "
    "neither, as in the paper.",
    "Label smoothing is 0.1, except in KerasHub: Keras's sparse cross-entropy "
    "does not support it.",
    "Medians of ROUNDS measurements of 6 steps each, each contestant in its "
    "own process, taking turns.",
]

_OURS = "benchmarks.training_step.ours"
_LIKE_KERAS_HUB = {"attention_dropout": 0.1}
_LIKE_TORCH = {"attention_dropout": 0.1, "activation_dropout": 0.1}


def _contestants():
    for backend in ("torch", "jax", "tensorflow"):
        peer = f"KerasHub on {backend}"
        yield Contestant(
            f"keras_attn on {backend}, dropout as KerasHub's",
            backend,
            _OURS,
            _LIKE_KERAS_HUB,
            peer,
        )
        yield Contestant(
            f"keras_attn on {backend}, our default", backend, _OURS
        )
        yield Contestant(
            peer,
            backend,
            "benchmarks.training_step.keras_hub",
            needs="keras_hub",
        )
    yield Contestant(
        "keras_attn on torch, dropout as torch.nn's",
        "torch",
        _OURS,
        _LIKE_TORCH,
        "torch.nn.Transformer",
    )
    yield Contestant(
        "torch.nn.Transformer", "torch", "benchmarks.training_step.torch_nn"
    )
    yield Contestant(
        "bare JAX",
        "jax",
        "benchmarks.training_step.bare_jax",
        against="keras_attn on jax, dropout as KerasHub's",
    )


CONTESTANTS = list(_contestants())
