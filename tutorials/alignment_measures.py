"""How an alignment runs: forward or not, and past the right places."""

import numpy as np


def share_forward(weights):
    """Returns how often the next character was heard later, or no earlier.

    Args:
        weights: float (characters, S). A row for each character.

    Returns:
        Float in [0, 1]: the share of steps from one row to the next at which
        the centre of the weights does not move back; 1 where there is no step.

    Examples:
        >>> share_forward(np.eye(4)), share_forward(np.eye(4)[[0, 2, 1, 3]])
        (1.0, 0.6666666666666666)
    """
    moves = np.diff(centres(weights))
    return float((moves >= 0).mean()) if len(moves) else 1.0


def centres(weights):
    """Returns the mean place that each row looks at, float (characters,)."""
    weights = np.asarray(weights, "float64")
    return weights @ np.arange(weights.shape[1]) / weights.sum(1)


def share_inside(weights, times, spans, margin=0.0):
    """Returns how much of the weight lies where the characters were made.

    Args:
        weights: float (characters, S).
        times: float (S,), in seconds.
        spans: float (characters, 2). When each begins and ends, in seconds.
        margin: float. How far beside it counts as well, in seconds.

    Returns:
        Float in [0, 1], the mean over characters.
    """
    start, stop = np.asarray(spans).T[..., None]
    inside = (times >= start - margin) & (times <= stop + margin)
    weights = np.asarray(weights, "float64")
    return float(((weights * inside).sum(1) / weights.sum(1)).mean())
