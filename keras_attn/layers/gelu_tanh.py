"""GELU in the form that GPT computes it."""

import keras


@keras.saving.register_keras_serializable(package="keras_attn")
def gelu_tanh(x):
    """Multiplies x by nearly the probability that a normal number is less.

        y = x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))

    the approximation of Hendrycks and Gimpel 2016, sec. 2,
    https://arxiv.org/abs/1606.08415. GPT and GPT-2 have it; Keras's `"gelu"`
    and BERT have the exact x P(X <= x).

    Args:
        x: float tensor of any shape.

    Returns:
        Float, the shape of `x`.

    Examples:
        >>> from keras_attn.layers.gelu_tanh import gelu_tanh
        >>> float(gelu_tanh(keras.ops.ones(1))[0]) < 0.8412
        True
    """
    return keras.activations.gelu(x, approximate=True)
