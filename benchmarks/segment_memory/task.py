"""The text, its segments and windows, and token counts."""

import numpy as np

VOCABULARY = 256


def text(case):
    """Returns ids, int32 (M + rows * tokens,).

    The first M are context only; the others are scored.
    """
    rng = np.random.default_rng(0)
    count = case["memory"] + case["rows"] * case["read"]
    return rng.integers(0, VOCABULARY, count).astype("int32")


def lines(case):
    """Returns the scored ids as contiguous rows, int32 (rows, tokens)."""
    return text(case)[case["memory"] :].reshape(case["rows"], -1)


def windows(case, step):
    """Returns int32 (windows, M + step); the last `step` ids are scored."""
    ids, memory = text(case), case["memory"]
    ends = np.arange(memory + step, len(ids) + 1, step)
    return ids[ends[:, None] + np.arange(-memory - step, 0)]


def tokens(case):
    """Counts the tokens scored per step."""
    return case["rows"] * case["read"]


def flops(case):
    """Counts the operations of a step that reads every token once."""
    width, seen = case["width"], case["memory"] + case["segment"]
    per_token = case["layers"] * (24 * width**2 + 4 * seen * width)
    return int(tokens(case) * (per_token + 2 * width * VOCABULARY))
