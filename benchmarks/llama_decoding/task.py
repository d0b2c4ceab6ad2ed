"""The decoding task of the language model: prompts and cost."""

import numpy as np

from benchmarks.decoding.task import runner, tokens
from benchmarks.llama_training.task import products

__all__ = ["runner", "tokens"]


def prompts(case, count=4, seed=0):
    """Draws batches of prompts, int32 (count, rows, length)."""
    rng = np.random.default_rng(seed)
    shape = count, case["rows"], case["length"]
    return rng.integers(0, case["vocabulary"], shape).astype("int32")


def flops(case):
    """Counts the floating-point operations of a step's matrix products.

    Keys and values are cached. The logits of a prompt are not needed.

    Args:
        case: dict of sizes.

    Returns:
        int.
    """
    length, new = case["length"], case["new"]
    prompt = length * products(case | {"vocabulary": 0}, length)
    generated = new * products(case, length + (new + 1) / 2)
    return int(2 * case["rows"] * (prompt + generated))
