"""deletion_and_insertion: is what a map points at what matters?"""

from typing import Any, NamedTuple

import keras
import numpy as np

from keras_attn import checks
from keras_attn.explain.rise import answers


class DeletionInsertion(NamedTuple):
    """Holds how an answer falls and rises as places go and come.

    Args:
        fractions: float (K + 1,). The share of the places that was changed.
        deletion: float (K + 1,). The score with the first ones hidden.
        insertion: float (K + 1,). The score with only the first ones seen.
        deletion_area: float. The area below, small for a good map.
        insertion_area: float. The area below, large for a good map.

    Examples:
        >>> keras_attn.explain.DeletionInsertion._fields[-2:]
        ('deletion_area', 'insertion_area')
    """

    fractions: Any
    deletion: Any
    insertion: Any
    deletion_area: float
    insertion_area: float


def deletion_and_insertion(
    function, inputs, saliency, masks, steps=None, batch_size=32
):
    """Hides what a map says matters most, first; and shows it, first.

    Petsiuk et al. 2018, sec. 4.1, https://arxiv.org/abs/1806.07421. A map that
    points at what the model uses makes its answer fall at once where these
    places are hidden, and rise at once where they alone are seen. Any map can
    be compared: of RISE, of gradients, of attention, a random one.

    Args:
        function: as for `rise`, but one score a row, float (B,).
        inputs: array of one input.
        saliency: float (*places). Where two are equal the earlier comes first.
        masks: as for `rise`; says what stands in the place of what is hidden.
        steps: int >= 1. K, in how many steps all places are changed; default
            one for each place.
        batch_size: int >= 1. Inputs that are asked about together.

    Returns:
        `DeletionInsertion`.

    Raises:
        ValueError: a map that does not fit, or a function that returns more
            than one score a row.

    Examples:
        >>> def second_is_seven(ids):
        ...     return (ids[:, 1] == 7).astype("float32")
        >>> found = keras_attn.explain.deletion_and_insertion(
        ...     second_is_seven, np.array([5, 7, 6]), np.array([0.0, 1, 0]),
        ...     keras_attn.explain.TokenMasks(mask_id=1))
        >>> found.deletion.tolist(), found.insertion.tolist()
        ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    """
    inputs = keras.ops.convert_to_numpy(inputs)
    saliency = keras.ops.convert_to_numpy(saliency).astype("float64")
    places = inputs.shape[: masks.axes]
    if saliency.shape != places:
        raise ValueError(
            f"`saliency` must have a number for each place, {places}. "
            f"Received: shape {saliency.shape}"
        )
    if np.isnan(saliency).any():
        raise ValueError("`saliency` must be numbers. Received: NaN among them")
    count = saliency.size
    steps = count if steps is None else steps
    checks.positive_int("steps", steps)
    checks.positive_int("batch_size", batch_size)
    rank = np.empty(count, int)
    rank[np.argsort(-saliency.ravel(), kind="stable")] = np.arange(count)
    changed = np.round(np.linspace(0, count, steps + 1)).astype(int)
    first = (rank < changed[:, None]).reshape(-1, *places)
    curves = [
        _scores(function, inputs, masks, seen.astype("float32"), batch_size)
        for seen in (~first, first)
    ]
    fractions = changed / count
    areas = (_area(fractions, curve) for curve in curves)
    return DeletionInsertion(fractions, *curves, *areas)


def _area(fractions, curve):
    return float(np.sum(np.diff(fractions) * (curve[1:] + curve[:-1]) / 2))


def _scores(function, inputs, masks, seen, batch_size):
    found = []
    for start in range(0, len(seen), batch_size):
        part = seen[start : start + batch_size]
        scores = answers(function, masks.apply(inputs, part))
        if scores.ndim != 1:
            raise ValueError(
                "`function` must return one score for each row. "
                f"Received: shape {scores.shape}"
            )
        found.append(scores)
    return np.concatenate(found)
