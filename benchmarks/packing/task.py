"""The data of the packing benchmark: pairs of random ids, of real lengths."""

import numpy as np

PAD, START, END = 0, 1, 2


class Ids:
    """A tokenizer of texts that are ids, such as `"7 12"`.

    Args:
        vocabulary_size: int.
    """

    pad_id, start_id, end_id = PAD, START, END

    def __init__(self, vocabulary_size):
        self.vocabulary_size = vocabulary_size

    def encode(self, texts):
        """Returns the ids of each text."""
        return [[int(number) for number in text.split()] for text in texts]


def lengths(case, seed=0):
    """Draws the numbers of tokens of source and target.

    Args:
        case: dict of sizes.
        seed: int.

    Returns:
        Int (2, pairs): log-normal, the target within some 15 % of the source.
    """
    rng = np.random.default_rng(seed)
    source = rng.normal(np.log(case["median"]), case["spread"], case["pairs"])
    target = source + rng.normal(0, 0.15, case["pairs"])
    drawn = np.exp(np.stack([source, target])).round().astype(int)
    return np.clip(drawn, 1, case["longest"])


def texts(case, seed=0):
    """Returns the sources and the targets, two lists of str."""
    rng = np.random.default_rng(seed)
    return tuple(
        [
            " ".join(map(str, rng.integers(END + 1, case["vocabulary"], n)))
            for n in side
        ]
        for side in lengths(case, seed).tolist()
    )


def tokens(case):
    """Returns the target tokens of an epoch, without padding."""
    return int((lengths(case)[1] + 1).sum())


def flops(case):
    """Counts the operations of the matrix products of all tokens.

    Those of attention between tokens, a few percent, are not counted.
    """
    width, inner = case["width"], case["inner"]
    source, target = (lengths(case) + 1).sum(1).tolist()
    network = 2 * width * inner
    encoder = case["layers"] * (4 * width * width + network)
    decoder = case["layers"] * (8 * width * width + network)
    output = width * case["vocabulary"]
    return 3 * 2 * (source * encoder + target * (decoder + output))
