"""GELU with the tanh approximation."""

import keras

from keras_attn.typing import Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
def gelu_tanh(x: TensorLike) -> Tensor:
    """Computes the tanh approximation of GELU.

        y = x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))

    Hendrycks and Gimpel 2016, sec. 2, https://arxiv.org/abs/1606.08415. Used by
    GPT and GPT-2; Keras's `"gelu"` and BERT use the exact x P(X <= x), X
    standard normal.

    Args:
        x: float tensor of any shape.

    Returns:
        Float, same shape as `x`.

    Examples:
        >>> from keras_attn.layers.gelu_tanh import gelu_tanh
        >>> float(gelu_tanh(keras.ops.ones(1))[0]) < 0.8412
        True
    """
    return keras.activations.gelu(x, approximate=True)
