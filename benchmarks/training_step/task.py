"""The training task: data and cost."""

import numpy as np

PAD, START, END = 0, 1, 2
DROPOUT = 0.1
SMOOTHING = 0.1
RATE = 1e-4


def batches(case, count=6, seed=0):
    """Draws random batches of token ids.

    Args:
        case: dict of sizes.
        count: int.
        seed: int.

    Returns:
        Three int32 (count, rows, length): sources, targets, labels. Every
        second row ends in padding, by up to half of its length.
    """
    rng = np.random.default_rng(seed)
    rows, length = case["rows"], case["length"]
    shape = (3, count, rows, length)
    ids = rng.integers(END + 1, case["vocabulary"], shape).astype("int32")
    lengths = rng.integers(length // 2, length, (count, rows))
    lengths[:, 1::2] = length
    ids[:, np.arange(length) >= lengths[..., None]] = PAD
    return tuple(ids)


def examples(case):
    """Returns the batches as the inputs and labels of a Keras model."""
    sources, targets, labels = batches(case)
    return (sources, targets), labels


def tokens(case):
    """Returns the target tokens per step, padding included."""
    return case["rows"] * case["length"]


def policy(case):
    """Returns the Keras dtype policy of a case, str."""
    dtype = case.get("dtype", "float32")
    return dtype if dtype == "float32" else f"mixed_{dtype}"


def flops(case):
    """Counts the floating-point operations of a step's matrix products.

    Forward, a product of (n, k) and (k, m) takes 2 n k m; backward, twice
    that. Elementwise operations, softmax and optimizer are not counted.

    Args:
        case: dict of sizes.

    Returns:
        int.
    """
    width, inner, length = case["width"], case["inner"], case["length"]
    attention = 4 * width * width + 2 * length * width
    network = 2 * width * inner
    encoder = attention + network
    decoder = 2 * attention + network
    output = width * case["vocabulary"]
    each = case["layers"] * (encoder + decoder) + output
    return 3 * 2 * tokens(case) * each
