"""The decoding task: sources, excluded ids and cost."""

import numpy as np

from benchmarks.training_step.task import END, PAD, START

__all__ = ["END", "PAD", "START"]


def sources(case, count=4, seed=0):
    """Draws batches of source sentences.

    Args:
        case: dict of sizes.
        count: int.
        seed: int.

    Returns:
        int32 (count, rows, length). Each row ends with the end token; every
        second row is padded after it, by up to half of its length.
    """
    rng = np.random.default_rng(seed)
    rows, length = case["rows"], case["length"]
    shape = count, rows, length
    ids = rng.integers(END + 1, case["vocabulary"], shape).astype("int32")
    lengths = rng.integers(length // 2, length, (count, rows))
    lengths[:, ::2] = length
    positions = np.arange(length)
    ids[positions == lengths[..., None] - 1] = END
    ids[positions >= lengths[..., None]] = PAD
    return ids


def never(case):
    """Returns the ids that no contestant may generate.

    They include the end token, so that every sequence has `new` tokens, unless
    the case sets `ends`.
    """
    return (PAD, START) if case.get("ends") else (PAD, START, END)


def logits_bias(case, low=-1e9):
    """Returns a bias, float32 (V,), that excludes the ids of `never`."""
    bias = np.zeros(case["vocabulary"], "float32")
    bias[list(never(case))] = low
    return bias


def runner(decode, batches):
    """Returns a callable that cycles through batches and decodes them.

    Args:
        decode: callable, takes one of the batches and returns the token ids,
            array (rows, new) that NumPy can read, or a list of such lists.
        batches: list, the sources in the form that `decode` takes.

    Returns:
        Callable of a number of steps, one batch each. It returns the mean of
        the ids of the last step, which is the same for contestants that
        generate the same tokens.
    """

    def run(steps):
        for step in range(steps):
            found = decode(batches[step % len(batches)])
        return float(np.asarray(found).mean())

    return run


def tokens(case):
    """Returns the tokens generated per step in the best sequences."""
    return case["rows"] * case["new"]


def flops(case):
    """Counts the floating-point operations of a step's matrix products.

    Keys and values are cached; a product of (n, k) and (k, m) takes 2 n k m.

    Args:
        case: dict of sizes.

    Returns:
        int.
    """
    width, inner, length = case["width"], case["inner"], case["length"]
    network = 2 * width * inner
    # Keys and values of the cross-attention belong to the source.
    source = 4 * width * width + 2 * length * width + network
    source += 2 * width * width
    seen = (case["new"] + 1) / 2
    target = 6 * width * width + 2 * (seen + length) * width + network
    encoder = case["rows"] * length * case["layers"] * source
    each = case["layers"] * target + width * case["vocabulary"]
    return int(2 * (encoder + tokens(case) * case["beams"] * each))
