"""The numbers that diagrams show."""

import numpy as np


def softmax(scores):
    """Computes the softmax of scores; an array of float64."""
    powers = np.exp(np.asarray(scores, "float64") - np.max(scores))
    return powers / powers.sum()
