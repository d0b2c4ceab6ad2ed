"""Dense layers of one input as one product."""

import math

import keras
from keras import ops

from keras_attn.backend.dense import is_plain, product, weights_of


def fused_qkv(layers):
    """Puts the weights of dense layers side by side.

    At each step of a training that costs more than one product saves
    (`make benchmarks TABLE=projections`); a loop of many steps does it once.

    Args:
        layers: list of built `keras.layers.Dense` or `keras.layers.EinsumDense`
            of one input axis D, all with a bias or none.

    Returns:
        Float (D, F), and float (F,) or None, in the compute dtype, for the F
        features of all of them; or (), where a layer does more than to multiply
        and add.
    """
    dtype = layers[0].compute_dtype
    if not all(is_plain(x, dtype) and _linear(x) for x in layers):
        return ()
    parts = zip(*(weights_of(x, dtype, 1) for x in layers), strict=True)
    return tuple(
        None if part[0] is None else ops.concatenate(part, axis=-1)
        for part in parts
    )


def apply_joined(joined, layers, x):
    """Applies them all.

    Args:
        joined: what `fused_qkv` made of them.
        layers: list of layers.
        x: float (..., D).

    Returns:
        List, one float (..., features...) a layer.
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
