"""Contestants and sizes of the packing benchmark."""

from benchmarks.harness.contestant import Contestant
from benchmarks.packing.task import flops, tokens

__all__ = ["flops", "tokens"]

TITLE = "Packed rows"
ROUNDS = 3
STEPS = 1
# The table does not show shares of the peak.
PEAKS = {}

_MODEL = {"vocabulary": 2000, "layers": 2, "heads": 4, "width": 128}
_MODEL |= {"inner": 512, "tokens_per_batch": 512, "row": 128}


def _case(name, median, spread, longest, pairs, **sizes):
    return {
        "name": name,
        "title": f"An epoch of {pairs:,} pairs",
        "column": f"lengths of {name}",
        # Importing a backend takes longer than an epoch.
        "process": "all",
        "median": median,
        "spread": spread,
        "longest": longest,
        "pairs": pairs,
        **_MODEL,
        **sizes,
    }


CASES = [
    _case("Tatoeba", 8, 0.45, 40, 256),
    _case("image captions", 12, 0.3, 40, 256),
]
_TINY = {"vocabulary": 50, "layers": 1, "heads": 2, "width": 16, "inner": 32}
QUICK_CASES = [
    _case("Tatoeba", 5, 0.4, 9, 12, tokens_per_batch=40, row=20, **_TINY)
]

NOTES = [
    "A Transformer with 2 + 2 layers of width 128, 4 heads, feed-forward width "
    "512, vocabulary 2,000, dropout 0.1, Adam, float32, in `fit`. Every "
    "contestant reads the same pairs of random ids in an epoch, in batches of "
    "at most 512 ids on each side, padding included.",
    "Lengths are log-normal, with a median of 8 tokens (sigma 0.45) like short "
    "sentences of Tatoeba, or of 12 (sigma 0.3) like captions of images; the "
    "target is about 15 % longer or shorter.",
    "*Padded*: all rows as long as the longest, `token_batches(buckets=1)`. "
    "*Three buckets*: the default of `token_batches`. *Packed*: rows of 128 "
    "ids, `packed_batches`. The untrained loss per token is the same in all.",
    "Medians of ROUNDS epochs, each contestant in its own process, taking "
    "turns, on PyTorch. MiB: peak memory of the process minus its memory "
    "before the first step. **Bold**: how many times as many tokens per second "
    "as with padded batches.",
]


# One backend: the ratios are those of the padding, which is the same on all.
CONTESTANTS = [
    Contestant(
        name,
        "torch",
        "benchmarks.packing.ours",
        {"batches": batches},
        "" if name == "padded" else "padded",
    )
    for name, batches in (
        ("packed", "packed"),
        ("three buckets", "buckets"),
        ("padded", "padded"),
    )
]
