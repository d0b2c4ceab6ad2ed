"""Local attention around a centre that the query predicts (local-p)."""

import dataclasses

from keras import ops

from keras_attn.ops.positions import default_positions


def predictive_window(fraction, visibility, lengths, window):
    """Hides what is out of the window, and says how near the rest is.

        p = S fraction
        nearness[s] = exp(-2 (s - p)^2 / D^2),    |s - p| <= D

    S being one more than the last position that the query may see. The
    standard deviation is half of the window (Luong et al. 2015, sec. 3.2, eq.
    10, https://arxiv.org/abs/1508.04025).

    Args:
        fraction: float (B, T), from `PredictedCentre`.
        visibility: `Visibility` of all keys.
        lengths: tuple, T and S.
        window: int. D, in tokens.

    Returns:
        The `Visibility` of the window, and float (B, T, S) of the dtype of
        `fraction`.
    """
    places = visibility.key_positions
    if places is None:
        places = default_positions(lengths[1])
    places = places[:, None]
    mask = visibility.to_mask(*lengths)
    seen = places if mask is None else ops.where(mask[:, 0], places, -1)
    end = ops.cast(ops.max(seen, axis=-1) + 1, fraction.dtype)
    centre = (end * fraction)[..., None]
    distance = ops.cast(places, fraction.dtype) - centre
    near = (ops.abs(distance) <= window)[:, None]
    if visibility.attention_mask is not None:
        near = ops.logical_and(visibility.attention_mask, near)
    nearness = ops.exp(-2 * ops.square(distance / window))
    return dataclasses.replace(visibility, attention_mask=near), nearness
