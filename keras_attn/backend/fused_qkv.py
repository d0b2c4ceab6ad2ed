"""Fuses dense layers of one input into one product."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.backend.dense import is_plain, product, weights_of
from keras_attn.backend.sharding import splits_weights
from keras_attn.typing import Tensor, TensorLike


def fused_qkv(layers: Sequence[Any]) -> Any:
    """Concatenates the weights of dense layers.

    In a training step this costs more than a single product saves
    (`make benchmarks TABLE=projections`); a decoding loop does it only once.

    Args:
        layers: list of built `keras.layers.Dense` or `keras.layers.EinsumDense`
            of one input axis D, all with or all without a bias.

    Returns:
        Float (D, F), and float (F,) or None, in the compute dtype, for the F
        features of all layers; or (), if a layer does more than multiply and
        add, or if its weights may be split over devices.
    """
    # Concatenation would gather the heads of all devices.
    if splits_weights():
        return ()
    dtype = layers[0].compute_dtype
    if not all(is_plain(x, dtype) and _linear(x) for x in layers):
        return ()
    parts = zip(*(weights_of(x, dtype, 1) for x in layers), strict=True)
    return tuple(
        None if part[0] is None else ops.concatenate(part, axis=-1)
        for part in parts
    )


def apply_fused_qkv(
    joined: Any, layers: Sequence[Any], x: TensorLike
) -> list[Tensor]:
    """Applies fused dense layers.

    Args:
        joined: result of `fused_qkv`.
        layers: list of layers.
        x: float (..., D).

    Returns:
        List of float (..., features...), one per layer.
    """
    matrix, bias = joined
    y = product(ops.reshape(x, (-1, matrix.shape[0])), matrix, bias)
    made, start = [], 0
    for layer in layers:
        features = layer.kernel.shape[1:]
        end = start + math.prod(features)
        made.append(
            ops.reshape(y[:, start:end], (*ops.shape(x)[:-1], *features))
        )
        start = end
    return made


def _linear(layer):
    return layer.activation in (None, keras.activations.linear)
