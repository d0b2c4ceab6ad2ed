"""A wrong word in what a decoder reads, and what it says behind it."""

import numpy as np


def plant_slips(reads, says, logits, never, seed=0):
    """Puts one wrong token into each row that a decoder reads.

    The wrong token is the one that a model finds likeliest but for the right
    one: a slip that it could make itself.

    Args:
        reads: int32 (B, T): start, y[1] .. y[T - 1]; padding (0) behind.
        says: int32 (B, T): y[1] .. y[T - 1], end; padding (0) behind.
        logits: float (B, T, V), of a model that has read `reads`.
        never: list of int. Ids that are no words: padding, start and end.
        seed: int. Decides where the slips are.

    Returns:
        The slips' rows, int32 (B, T), and their places, int (B,), none of them
        the first place, nor behind the last word.

    Raises:
        ValueError: a row has no word.

    Examples:
    >>> reads, says = np.array([[1, 5, 6]]), np.array([[5, 6, 2]])
    >>> logits = np.eye(8)[None, [7, 3, 3]] + np.eye(8)[None, [5, 6, 2]]
    >>> rows, places = plant_slips(reads, says, logits, [0, 1, 2], seed=1)
    >>> rows.tolist(), places.tolist()
    ([[1, 7, 6]], [1])
    """
    words = (says != 0).sum(1) - 1  # the end is no word
    if words.min() < 1:
        raise ValueError(
            "`says` must have a word in each row. "
            f"Received: none in row {int(words.argmin())}"
        )
    rows = np.arange(len(reads))
    places = np.random.default_rng(seed).integers(1, words + 1)
    # The token that is read at a place is what was said in front of it.
    likely = np.array(logits[rows, places - 1], "float64")
    likely[:, never] = -np.inf
    likely[rows, says[rows, places - 1]] = -np.inf
    slipped = reads.copy()
    slipped[rows, places] = likely.argmax(-1)
    return slipped, places


def right_behind(logits, says, places, longest):
    """Returns how often a model is right behind a place.

    Args:
        logits: float (B, T, V).
        says: int32 (B, T), the right tokens; padding (0) behind them.
        places: int (B,).
        longest: int >= 1. How far behind, in tokens.

    Returns:
        Float (longest,): the share of right tokens at the place, one token
        behind it, and so on, over the rows that are so long. nan where no row
        is.
    """
    hits = logits.argmax(-1) == says
    shares = []
    for distance in range(longest):
        inside = places + distance < says.shape[1]
        rows = np.flatnonzero(inside)
        there = says[rows, places[rows] + distance] != 0
        rows = rows[there]
        found = hits[rows, places[rows] + distance]
        shares.append(found.mean() if len(rows) else np.nan)
    return np.array(shares)
