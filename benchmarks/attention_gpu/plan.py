"""Contestants, sizes and masks of the attention benchmark on a GPU."""

from benchmarks.attention import plan as attention
from benchmarks.attention.task import WINDOW, flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Attention on a GPU"
DEVICE = "gpu"
ROUNDS = 5
# The size of the square matrices, by dtype.
PEAKS = {"bfloat16": 8192, "float32": 8192}

# Batch, heads, T, width: as many tokens in each.
_SIZES = ((32, 16, 512, 128), (8, 16, 2048, 128), (2, 16, 8192, 128))
_MASKS = ("none", "causal", "padded", "window")
# Dtype and steps per measurement of each size. In float32, T = 8,192 takes a
# tenth of a second per step and is left out.
_GROUPS = (("bfloat16", (20, 8, 2)), ("float32", (2, 1)))


def _case(size, steps, mask, dtype):
    case = attention.case(*size, steps, mask, backward=True)
    return {
        **case,
        "name": f"{case['name']}, {dtype}",
        "title": f"{case['title']}, {dtype}",
        # Importing a backend takes longer than a case.
        "process": "all",
        "device": "gpu",
        "dtype": dtype,
    }


CASES = [
    _case(size, steps, mask, dtype)
    for dtype, steps_of_sizes in _GROUPS
    for size, steps in zip(_SIZES, steps_of_sizes, strict=False)
    for mask in _MASKS
]
QUICK_CASES = [
    _case((2, 2, 16, 8), 2, mask, dtype)
    for dtype, _ in _GROUPS
    for mask in ("none", "padded")
]

CONTESTANTS = [
    one
    for one in attention.CONTESTANTS
    if "MultiheadAttention" not in one.name
    and "MultiHeadAttention" not in one.name
    and one.backend != "tensorflow"
]

NOTES = [
    "Sizes are batch x heads x T x features per head. *causal*: query t sees "
    "keys 0 to t; *padded*: all rows but the first have padded keys, half of "
    f"the keys in the last row; *window*: causal, and less than {WINDOW} keys "
    "back.",
    "This library receives the structure of the mask; a peer receives its "
    "causal flag or a boolean mask.",
    "Backward computes the gradients of queries, keys and values. JAX under "
    "`jax.jit`; PyTorch in eager mode, so that short steps include the time "
    "that Python takes to start kernels.",
    "TFLOP/s count the pairs of queries and keys that the mask leaves, "
    "forward 4 operations per pair and feature, backward 2.5 times as many. A "
    "kernel that computes masked pairs too does not get credit for them.",
    "float32 has the default precision of each backend: PyTorch multiplies in "
    "float32, JAX in TensorFloat-32. Compare rows of the same backend.",
    "Medians of ROUNDS measurements of 20, 8 and 2 steps in bfloat16, 2 and 1 "
    "in float32, each contestant in its own process, taking turns; the time "
    "ends when the GPU has finished. MiB: peak of the memory that PyTorch "
    "allocated minus that of the inputs; JAX cannot reset its peak. **Bold**: "
    "how many times as fast as the Keras op on the same backend.",
]
