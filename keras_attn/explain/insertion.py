"""deletion_and_insertion: evaluation of saliency maps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import number_array
from keras_attn.explain.rise import answers, check_function, check_masks
from keras_attn.typing import TensorLike


class DeletionInsertion(NamedTuple):
    """Deletion and insertion curves of a saliency map.

    Args:
        fractions: float (K + 1,). The fraction of the positions that was
            changed.
        deletion: float (K + 1,). The score with the most salient ones hidden.
        insertion: float (K + 1,). The score with only the most salient ones
            visible.
        deletion_area: float. Area under the curve, small for a good map.
        insertion_area: float. Area under the curve, large for a good map.

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
    function: Callable[..., Any],
    inputs: TensorLike,
    saliency: TensorLike,
    masks: Any,
    steps: int | None = None,
    batch_size: int = 32,
) -> DeletionInsertion:
    """Computes deletion and insertion curves of a saliency map.

    The positions are hidden (deletion) or shown (insertion) in order of
    saliency (Petsiuk et al. 2018, sec. 4.1, https://arxiv.org/abs/1806.07421).
    If the map marks what the model uses, the score falls quickly under deletion
    and rises quickly under insertion. Maps from any method can be compared:
    RISE, gradients, attention, or a random map.

    Args:
        function: as for `rise`, but one score per row, float (B,).
        inputs: array of one input.
        saliency: float (*positions). Ties are broken by position.
        masks: as for `rise`; defines what replaces hidden positions.
        steps: int in [1, number of positions]. K, the number of steps. Default:
            one per position.
        batch_size: int >= 1. Inputs per call of `function`.

    Returns:
        `DeletionInsertion`.

    Raises:
        ValueError: a map that does not fit, or a function that returns more
            than one score per row.

    Examples:
        >>> def second_is_seven(ids):
        ...     return (ids[:, 1] == 7).astype("float32")
        >>> found = keras_attn.explain.deletion_and_insertion(
        ...     second_is_seven, np.array([5, 7, 6]), np.array([0.0, 1, 0]),
        ...     keras_attn.explain.TokenMasks(mask_id=1))
        >>> found.deletion.tolist(), found.insertion.tolist()
        ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    """
    check_function(function)
    inputs = number_array("inputs", inputs)
    check_masks(masks, inputs)
    saliency = number_array("saliency", saliency).astype("float64")
    shape = inputs.shape[: masks.axes]
    if saliency.shape != shape:
        raise ValueError(
            f"`saliency` must have one value per position, shape {shape}. "
            f"Received: shape {saliency.shape}"
        )
    if np.isnan(saliency).any():
        raise ValueError("`saliency` must not contain NaN. Received: NaN")
    count = saliency.size
    steps = count if steps is None else steps
    checks.integer("steps", steps, least=1, most=count)
    checks.positive_int("batch_size", batch_size, most=None)
    rank = np.empty(count, int)
    rank[np.argsort(-saliency.ravel(), kind="stable")] = np.arange(count)
    changed = np.round(np.linspace(0, count, steps + 1)).astype(int)
    first = (rank < changed[:, None]).reshape(-1, *shape)
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
