"""A dense layer as one product that adds its bias on the way."""

import math

import keras

if keras.backend.backend() == "torch":
    import torch


def apply_dense(layer, x, contracted=1):
    """Applies a built `Dense` or `EinsumDense` whose kernel is one matrix.

    y = f(x W + b). On PyTorch, which runs what it is told one thing at a time,
    this is one `addmm`: Keras's layers transpose, multiply and add in three
    steps, and each call of a layer takes as long as a small product. On other
    backends, and for a layer that is quantized, it is a call of the layer.

    Args:
        layer: `keras.layers.Dense` or `keras.layers.EinsumDense`, with a
            kernel (inputs..., features...) and a bias (features...) or none.
        x: float (..., inputs...).
        contracted: int. How many axes the inputs have.

    Returns:
        Float (..., features...).
    """
    plain = (
        keras.backend.backend() == "torch"
        and layer.quantization_mode is None
        and layer.activity_regularizer is None
        and keras.backend.standardize_dtype(x.dtype) == layer.compute_dtype
    )
    if not plain:
        return layer(x)
    # The property, not the variable: it has LoRA's part in it.
    kernel = keras.ops.cast(layer.kernel, x.dtype)
    features = kernel.shape[contracted:]
    matrix = kernel.reshape(-1, math.prod(features))
    rows = x.reshape(-1, matrix.shape[0])
    if layer.bias is None:
        y = rows @ matrix
    else:
        bias = keras.ops.cast(layer.bias, x.dtype)
        y = torch.addmm(bias.reshape(-1), rows, matrix)
    y = y.reshape(*x.shape[: x.ndim - contracted], *features)
    return y if layer.activation is None else layer.activation(y)
