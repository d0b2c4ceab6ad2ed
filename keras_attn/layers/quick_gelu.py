"""GELU with the sigmoid approximation."""

import keras
from keras import ops

from keras_attn.typing import Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
def quick_gelu(x: TensorLike) -> Tensor:
    """Computes the sigmoid approximation of GELU.

        y = x sigmoid(1.702 x)

    Hendrycks and Gimpel 2016, sec. 2, https://arxiv.org/abs/1606.08415. Used by
    gpt-oss, in a gated network with `gate_limit`.

    Args:
        x: float tensor of any shape.

    Returns:
        Float, same shape as `x`.

    Examples:
        >>> from keras_attn.layers.quick_gelu import quick_gelu
        >>> 0.845 < float(quick_gelu(keras.ops.ones(1))[0]) < 0.846
        True
    """
    return x * ops.sigmoid(1.702 * x)
