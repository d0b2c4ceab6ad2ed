"""Contestants, sizes and masks of the attention benchmark."""

from benchmarks.attention.task import WINDOW, flops, tokens
from benchmarks.harness.contestant import Contestant

__all__ = ["flops", "tokens"]

TITLE = "Attention"
ROUNDS = 5
# All at once need more memory than a small machine has.
APART = True

# Batch, heads, T, width, and steps per measurement.
_SIZES = (
    (8, 8, 128, 64, 100),
    (4, 8, 512, 64, 10),
    (1, 8, 2048, 64, 3),
    (1, 4, 8192, 64, 1),
)
_MASKS = ("none", "causal", "padded", "window")


def case(rows, heads, length, width, steps, mask, backward):
    """Returns a case: sizes, mask, passes and steps per measurement."""
    size = f"{rows} x {heads} x {length:,} x {width}"
    passes = "forward + backward" if backward else "forward"
    return {
        "name": f"{size}, {mask}, {passes}",
        "title": f"{size}, {passes}",
        "column": mask,
        # Shared by both passes; forward runs first, since it needs less memory.
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
    "t sees keys 0 to t; *padded*: all rows but the first have padded keys, "
    "half of the keys in the last row or in a single row; *window*: causal, "
    f"and less than {WINDOW} keys back.",
    "This library receives the structure of the mask; a peer receives its "
    "causal flag, a boolean mask or its window.",
    "The op takes queries, keys and values; the layer takes one sequence and "
    "has the four projections. Backward computes the gradients of these "
    "inputs.",
    "JAX under `jax.jit`; TensorFlow under `tf.function`, as Keras compiles on "
    "a CPU (without XLA); PyTorch in eager mode.",
    "Medians of 5 measurements of 100, 10, 3 and 1 steps, fewer for longer T "
    "(on PyTorch, 15 measurements of 4 x 8 x 512 without a mask and of 2,048 "
    "padded tokens, 9 of 8,192 causal ones), each contestant in its own "
    "process; those of one backend take turns. MiB: peak memory of the process "
    "minus its memory before the first step. **Bold**: how many times as fast "
    "as the Keras counterpart on the same backend.",
    "JAX and TensorFlow were measured without `make`, with `python -m "
    "benchmarks attention`, from 2026-11-21 on.",
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
