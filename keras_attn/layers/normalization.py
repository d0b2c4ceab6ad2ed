"""Normalization layers by name."""

from typing import Any

import keras

from keras_attn import checks

BIAS_FREE = "bias_free_layer_norm"
NORMALIZATIONS = "layer_norm", BIAS_FREE, "rms_norm"


def check_normalization(normalization: Any) -> str:
    """Returns `normalization`, or raises if there is none of that name."""
    return checks.choice("normalization", normalization, NORMALIZATIONS)


def make_norm(
    normalization: str,
    epsilon: float,
    *,
    dtype: Any,
    name: str,
    axis: int | tuple[int, ...] = -1,
) -> keras.layers.Layer:
    """Creates a normalization layer.

    Args:
        normalization: `"layer_norm"` (Ba et al. 2016,
            https://arxiv.org/abs/1607.06450); `"bias_free_layer_norm"`, which
            adds no offset; or `"rms_norm"`, which neither subtracts the mean
            nor adds an offset (Zhang and Sennrich 2019,
            https://arxiv.org/abs/1910.07467).
        epsilon: float. Added to the variance or the mean square.
        dtype: dtype policy.
        name: str.
        axis: int, or tuple of int: the axes of one mean.

    Returns:
        A Keras layer, not built.
    """
    kind, options = keras.layers.LayerNormalization, {}
    if normalization == "rms_norm":
        kind = keras.layers.RMSNormalization
    elif normalization == BIAS_FREE:
        options["center"] = False
    norm = kind(axis=axis, epsilon=epsilon, dtype=dtype, name=name, **options)
    # Keras would warn that its RMS norm loses the mask (as of Keras 3.15.1).
    norm.supports_masking = True
    return norm
