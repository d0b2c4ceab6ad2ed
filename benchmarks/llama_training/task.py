"""The training task of the language model: data and cost."""

import numpy as np

from benchmarks.training_step.task import RATE

__all__ = ["RATE"]


def batches(case, count=6, seed=0):
    """Draws random batches of token ids.

    Args:
        case: dict of sizes.
        count: int.
        seed: int.

    Returns:
        Two int32 (count, rows, length): inputs and the tokens that follow.
    """
    rng = np.random.default_rng(seed)
    shape = count, case["rows"], case["length"] + 1
    ids = rng.integers(0, case["vocabulary"], shape).astype("int32")
    return ids[..., :-1], ids[..., 1:]


def tokens(case):
    """Returns the tokens per step."""
    return case["rows"] * case["length"]


def products(case, seen):
    """Counts the multiplications of a token's matrix products.

    Args:
        case: dict of sizes.
        seen: float. Keys that a query is multiplied by.

    Returns:
        float.
    """
    width = case["width"]
    narrow = width // case["heads"] * case["key_value_heads"]
    attention = 2 * width * (width + narrow) + 2 * seen * width
    network = 3 * width * case["inner"]
    output = width * case["vocabulary"]
    return case["layers"] * (attention + network) + output


def flops(case):
    """Counts the floating-point operations of a step's matrix products.

    Forward, a product of (n, k) and (k, m) takes 2 n k m; backward, twice
    that. Half of the keys are masked, but counted.

    Args:
        case: dict of sizes.

    Returns:
        int.
    """
    return int(3 * 2 * tokens(case) * products(case, case["length"]))
