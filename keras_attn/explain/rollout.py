"""rollout: attention rollout through all layers."""

from collections.abc import Sequence

import numpy as np

from keras_attn.explain.arguments import real_number
from keras_attn.explain.attention_map import AttentionMap, attention_weights
from keras_attn.typing import Tensor


def rollout(maps: Sequence[AttentionMap], residual: float = 0.5) -> Tensor:
    """Computes the attention rollout through all layers.

        R_0 = I,   R_l = (r I + (1 - r) A_l) R_(l-1)

    Abnar and Zuidema 2020, https://arxiv.org/abs/2005.00928, with A_l the mean
    over the heads of layer l, and r the weight of the residual connection. The
    value projections and other transformations are ignored. A fully masked
    token keeps only itself.

    Args:
        maps: list of `AttentionMap` of one stack of self-attention, from the
            first layer to the last; or of float (B, N, T, T).
        residual: float in [0, 1]. r. Default 0.5, as published.

    Returns:
        Float32 (B, T, T): the contribution of each column's token to the final
        state at each row's position. Rows sum to 1.

    Raises:
        ValueError: no maps; weights that are not square, differ in shape, are
            negative or not finite; or `residual` out of range.

    Examples:
        >>> weights = np.tril(np.ones((1, 1, 3, 3))) / [[1], [2], [3]]
        >>> keras_attn.explain.rollout([weights, weights])[0, 2].round(2)
        array([0.32, 0.24, 0.44], dtype=float32)
    """
    if not 0 <= real_number("residual", residual) <= 1:
        raise ValueError(
            f"`residual` must lie in [0, 1]. Received: residual={residual}"
        )
    if not isinstance(maps, (list, tuple)) or isinstance(maps, AttentionMap):
        raise ValueError(
            "`maps` must be a list of `AttentionMap` or of weights of shape "
            f"(B, N, T, T). Received: maps of type {type(maps).__name__}"
        )
    layers = [attention_weights("maps", one) for one in maps]
    shapes = {layer.shape[:1] + layer.shape[2:] for layer in layers}
    if len(shapes) != 1 or layers[0].shape[2] != layers[0].shape[3]:
        raise ValueError(
            "`maps` must be from self-attention layers over the same tokens. "
            f"Received: shapes {[layer.shape for layer in layers]}"
        )
    rows, _, length, _ = layers[0].shape
    rolled_out = np.broadcast_to(np.eye(length), (rows, length, length))
    for layer in layers:
        mean = layer.mean(axis=1, dtype="float64")
        mixed = residual * np.eye(length) + (1 - residual) * mean
        total = mixed.sum(axis=-1, keepdims=True)
        mixed = np.where(total > 0, mixed / np.where(total, total, 1), 0)
        fully_masked = layer.sum(axis=(1, 3)) == 0
        mixed = np.where(fully_masked[..., None], np.eye(length), mixed)
        rolled_out = mixed @ rolled_out
    return rolled_out.astype("float32")
