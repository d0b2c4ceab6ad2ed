"""Local attention with a predicted window center (local-p)."""

import dataclasses
from typing import TYPE_CHECKING, Any

from keras import ops

from keras_attn.backend import reduce_max
from keras_attn.ops.positions import default_positions
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.visibility import Visibility


def predictive_window(
    fraction: TensorLike,
    visibility: "Visibility",
    lengths: tuple[Any, ...],
    window: int,
) -> "tuple[Visibility, Tensor]":
    """Masks keys outside the window and weights the others by distance.

        p = S fraction
        nearness[s] = exp(-2 (s - p)^2 / D^2),    |s - p| <= D

    where S is one more than the last position visible to the query. The
    standard deviation is half the window (Luong et al. 2015, sec. 3.2, eq. 10,
    https://arxiv.org/abs/1508.04025).

    Args:
        fraction: float (B, T), from `PredictedCenter`.
        visibility: `Visibility` of all keys.
        lengths: tuple, T and S.
        window: int. D, in tokens.

    Returns:
        The `Visibility` of the window, and the nearness, float (B, T, S) in
        the dtype of `fraction`.
    """
    positions = visibility.key_positions
    if positions is None:
        positions = default_positions(lengths[1])
    positions = positions[:, None]
    mask = visibility.to_mask(*lengths)
    visible = positions
    if mask is not None:
        visible = ops.where(mask[:, 0], positions, -1)
    end = ops.cast(reduce_max(visible, axis=-1) + 1, fraction.dtype)
    center = (end * fraction)[..., None]
    distance = ops.cast(positions, fraction.dtype) - center
    near = (ops.abs(distance) <= window)[:, None]
    if visibility.attention_mask is not None:
        near = ops.logical_and(visibility.attention_mask, near)
    nearness = ops.exp(-2 * ops.square(distance / window))
    return dataclasses.replace(visibility, attention_mask=near), nearness
