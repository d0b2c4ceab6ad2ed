"""Contestants and sizes of the projection benchmark."""

from benchmarks.harness.contestant import Contestant

TITLE = "Three projections of one sequence"
ROUNDS = 7
STEPS = 30

_SIZES = ((1024, 256, 60), (2048, 256, 30), (2048, 512, 15))


def _case(tokens, width, steps):
    title = f"{tokens:,} tokens of {width} features"
    return {
        "name": title,
        "title": "Forward + backward",
        "column": title,
        "tokens": tokens,
        "width": width,
        "steps": steps,
    }


CASES = [_case(*size) for size in _SIZES]
QUICK_CASES = [_case(6, 8, 2)]

NOTES = [
    "x W + b for queries, keys and values of a self-attention, and the "
    "gradients of x, W and b, float32. *One product*: the three matrices are "
    "separate variables, concatenated at each step; `MultiHeadAttention` "
    "computes three products.",
    "JAX under `jax.jit`; TensorFlow under `tf.function`; PyTorch in eager "
    "mode.",
    "Medians of ROUNDS measurements of 60, 30 and 15 steps, each contestant in "
    "its own process, taking turns. **Bold**: how many times as fast as three "
    "products on the same backend.",
]


def _contestants():
    for backend in ("torch", "jax", "tensorflow"):
        three = f"three products on {backend}"
        for name, together in (
            (f"one product on {backend}", True),
            (three, False),
        ):
            yield Contestant(
                name,
                backend,
                "benchmarks.projections.products",
                {"together": together},
                three if together else "",
            )


CONTESTANTS = list(_contestants())


def flops(case):
    """Counts the floating-point operations of the products."""
    return 3 * 3 * 2 * case["tokens"] * case["width"] ** 2


def tokens(case):
    """Counts the tokens of a step."""
    return case["tokens"]
