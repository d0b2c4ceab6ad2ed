"""Scores of translations by the length of their source."""

import numpy as np
from translation import bleu


def length_groups(lengths, count):
    """Divides lengths into ranges with about as many sentences in each.

    Args:
        lengths: list of int, one a sentence.
        count: int >= 1. Ranges at most.

    Returns:
        List of (shortest, longest), growing; every length is in one of them.

    Raises:
        ValueError: there are no lengths, or `count` is not positive.

    Examples:
    >>> length_groups([3, 4, 5, 5, 8, 9], 3)
    [(3, 4), (5, 5), (6, 9)]
    """
    if not lengths or count < 1:
        raise ValueError(
            "`lengths` must not be empty and `count` at least 1. "
            f"Received: {len(lengths)} lengths and count={count}"
        )
    ordered = sorted(lengths)
    ends = {
        ordered[max(0, len(ordered) * (number + 1) // count - 1)]
        for number in range(count)
    }
    groups, shortest = [], ordered[0]
    for longest in sorted(ends):
        groups.append((shortest, longest))
        shortest = longest + 1
    return groups


def scores_by_length(translations, references, lengths, groups):
    """Scores each group of sentences.

    Args:
        translations: list of str.
        references: list of lists of str: one or more for each translation.
        lengths: list of int, of the sources.
        groups: list of (shortest, longest).

    Returns:
        List of dicts: `words`, the range; `sentences`, how many; `bleu`, in
        percent; `right`, the share that is a reference to the letter. Without
        sentences both are nan.
    """
    lengths, found = np.asarray(lengths), []
    for shortest, longest in groups:
        inside = np.flatnonzero((lengths >= shortest) & (lengths <= longest))
        mine = [translations[i] for i in inside]
        theirs = [references[i] for i in inside]
        right = [
            text in group for text, group in zip(mine, theirs, strict=True)
        ]
        found.append(
            {
                "words": (shortest, longest),
                "sentences": len(inside),
                "bleu": bleu(mine, theirs).score if mine else float("nan"),
                "right": float(np.mean(right)) if mine else float("nan"),
            }
        )
    return found
