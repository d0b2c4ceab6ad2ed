"""Arguments and distinct draws of the generators."""

import zlib
from typing import Any

from keras_attn import checks
from keras_attn.datasets.content_split import SPLITS
from keras_attn.datasets.stable_random import StableRandom

# More would take hours, and far more would fill the memory.
_MOST_EXAMPLES = 10_000_000
# Even the rarest of a few thousand examples is drawn within as many draws.
_MOST_MISSES = 50_000


def check_arguments(
    n: int, seed: int, split: str, most: float = _MOST_EXAMPLES
) -> None:
    """Raises ValueError if an argument of a generator is invalid."""
    checks.integer("n", n, 0, most)
    checks.integer("seed", seed, 0)
    checks.choice("split", split, SPLITS)


def named_random(seed: int, name: str) -> StableRandom:
    """Returns a `StableRandom`, one independent stream per name."""
    return StableRandom(seed, zlib.crc32(name.encode()))


def take_distinct(n: int, candidates: Any) -> list[Any]:
    """Returns a list of the first n distinct candidates.

    `candidates` is an endless iterator of (key, example), or None for an
    example of another split. Examples are distinct if their keys are.
    """
    found, misses = {}, 0
    if not n:
        return []
    for candidate in candidates:
        if candidate is None or candidate[0] in found:
            misses += 1
            if misses == _MOST_MISSES:
                break
            continue
        key, example = candidate
        found[key], misses = example, 0
        if len(found) == n:
            return list(found.values())
    raise ValueError(
        f"`n` must be at most {len(found)}, the number of distinct examples "
        f"that were found. Received: n={n}"
    )
