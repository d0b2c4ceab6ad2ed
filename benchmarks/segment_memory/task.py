"""The text, how it is read, and how many tokens that makes."""

import numpy as np

VOCABULARY = 256


def text(case):
    """Returns int32 (M + rows * tokens,) ids: what is read, and what is before.

    The last of them are scored; the first M are only seen.
    """
    rng = np.random.default_rng(0)
    count = case["memory"] + case["rows"] * case["read"]
    return rng.integers(0, VOCABULARY, count).astype("int32")


def lines(case):
    """Returns int32 (rows, tokens): what is scored, in rows that go on."""
    return text(case)[case["memory"] :].reshape(case["rows"], -1)


def windows(case, step):
    """Returns int32 (windows, M + step): of each the last `step` are scored."""
    ids, memory = text(case), case["memory"]
    ends = np.arange(memory + step, len(ids) + 1, step)
    return ids[ends[:, None] + np.arange(-memory - step, 0)]


def tokens(case):
    """Counts the tokens that a step scores."""
    return case["rows"] * case["read"]


def flops(case):
    """Counts the products of a step that reads every token once."""
    width, seen = case["width"], case["memory"] + case["segment"]
    a_token = case["layers"] * (24 * width**2 + 4 * seen * width)
    return int(tokens(case) * (a_token + 2 * width * VOCABULARY))
