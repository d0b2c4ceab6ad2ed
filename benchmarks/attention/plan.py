"""Who runs attention, on which sizes and under which masks."""

from benchmarks.attention.task import WINDOW, flops, tokens
from benchmarks.harness.contestant import Contestant

__all__ = ["flops", "tokens"]

TITLE = "Attention"
ROUNDS = 5
# All of them at once would need more memory than a small machine has.
APART = True

# Batch, heads, T, width, and how many steps make a measurement.
_SIZES = (
    (8, 8, 128, 64, 100),
    (4, 8, 512, 64, 10),
    (1, 8, 2048, 64, 3),
    (1, 4, 8192, 64, 1),
)
_MASKS = ("none", "causal", "padded", "window")


def case(rows, heads, length, width, steps, mask, backward):
    """Describes what is run: sizes, mask, passes, steps a measurement."""
    size = f"{rows} x {heads} x {length:,} x {width}"
    passes = "forward + backward" if backward else "forward"
    return {
        "name": f"{size}, {mask}, {passes}",
        "title": f"{size}, {passes}",
        "column": mask,
        # Forward first, which needs less memory.
        "process": f"{size}, {mask}",
        "steps": steps,
        "rows": rows,
        "heads": heads,
        "length": length,
        "width": width,
        "mask": mask,
        "backward": backward,
    }


CASES = [
    case(*size, mask, backward)
    for size in _SIZES
    for mask in _MASKS
    for backward in (False, True)
]
QUICK_CASES = [
    case(2, 2, 16, 8, 2, mask, backward)
    for mask in _MASKS
    for backward in (False, True)
]

NOTES = [
    "Sizes are batch x heads x T x features per head, float32. *causal*: query "
    "t sees keys 0 to t; *padded*: the keys of all rows but the first are "
    "padded, those of the last by a half, a single row by a half; *window*: "
    f"causal, and less than {WINDOW} keys back.",
    "This library is told the structure of the mask, a peer what it takes: its "
    "causal switch, a mask of booleans, or its window.",
    "The op takes queries, keys and values; the layer takes one sequence and "
    "has the four projections. Backward is the gradient in these inputs.",
    "JAX under `jax.jit`; TensorFlow under `tf.function`, as Keras compiles on "
    "a CPU (without XLA); PyTorch as it is.",
    "Medians of 5 measurements of 100, 10, 3 and 1 steps, the longer T the "
    "fewer (on PyTorch, 15 of 4 x 8 x 512 without a mask and of 2,048 padded "
    "tokens, 9 of 8,192 causal ones), in processes of their own; those of one "
    "backend take turns. MiB: "
    "the largest memory of the process over that before its first step. "
    "**Bold**: how many times as fast as the same of Keras on the same "
    "backend.",
    "On JAX and TensorFlow measured without `make`, as `python -m benchmarks "
    "attention`, from 2026-11-21 on.",
]

_LAYER = "benchmarks.attention.layer"


def _contestants():
    for backend in ("torch", "jax", "tensorflow"):
        peer = f"keras.ops.dot_product_attention on {backend}"
        yield Contestant(
            f"keras_attn.ops.attend on {backend}",
            backend,
            "benchmarks.attention.ours",
            against=peer,
        )
        yield Contestant(peer, backend, "benchmarks.attention.keras_op")
        peer = f"keras.layers.MultiHeadAttention on {backend}"
        yield Contestant(
            f"keras_attn.layers.MultiHeadAttention on {backend}",
            backend,
            _LAYER,
            {"library": "keras_attn"},
            peer,
        )
        yield Contestant(peer, backend, _LAYER, {"library": "keras"})
    yield Contestant("torch SDPA", "torch", "benchmarks.attention.torch_sdpa")
    yield Contestant(
        "torch.nn.MultiheadAttention",
        "torch",
        "benchmarks.attention.torch_layer",
    )


CONTESTANTS = list(_contestants())
