"""A dense layer as one product that adds its bias on the way."""

import math

import keras
import numpy as np

if keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def apply_dense(layer, x, contracted=1):
    """Applies a built `Dense` or `EinsumDense` whose kernel is one matrix.

    y = f(x W + b). On PyTorch, which runs what it is told one thing at a time,
    this is one `addmm`, on TensorFlow one product of two matrices, to which the
    graph adds the bias: Keras's layers transpose, multiply and add in three
    steps, and each call of a layer takes as long as a small product. On JAX,
    and for a layer that is quantized, it is a call of the layer.

    Args:
        layer: `keras.layers.Dense` or `keras.layers.EinsumDense`, with a
            kernel (inputs..., features...) and a bias (features...) or none.
        x: float (..., inputs...).
        contracted: int. How many axes the inputs have.

    Returns:
        Float (..., features...).
    """
    return apply_denses([layer], x, contracted)[0]


def apply_denses(layers, x, contracted=1):
    """Applies several built layers to the same input, in one product.

    Args:
        layers: list of layers, as for `apply_dense`.
        x: float (..., inputs...).
        contracted: int. How many axes the inputs have.

    Returns:
        List of float (..., features...).
    """
    name = keras.backend.backend()
    if name not in _PRODUCTS or not all(_plain(layer, x) for layer in layers):
        return [layer(x) for layer in layers]
    matrices, biases = zip(
        *(_weights(layer, x, contracted) for layer in layers), strict=True
    )
    rows = keras.ops.reshape(x, (-1, matrices[0].shape[0]))
    products = _products(rows, matrices, biases)
    leading = keras.ops.shape(x)[: len(x.shape) - contracted]
    results = []
    for layer, y in zip(layers, products, strict=True):
        features = layer.kernel.shape[contracted:]
        y = keras.ops.reshape(y, (*leading, *features))
        results.append(y if layer.activation is None else layer.activation(y))
    return results


def _plain(layer, x):
    return (
        layer.quantization_mode is None
        and layer.activity_regularizer is None
        and keras.backend.standardize_dtype(x.dtype) == layer.compute_dtype
    )


def _weights(layer, x, contracted):
    # The property, not the variable: it has LoRA's part in it.
    kernel = keras.ops.cast(layer.kernel, x.dtype)
    features = kernel.shape[contracted:]
    matrix = keras.ops.reshape(kernel, (-1, math.prod(features)))
    if layer.bias is None:
        return matrix, None
    return matrix, keras.ops.reshape(keras.ops.cast(layer.bias, x.dtype), (-1,))


def _products(rows, matrices, biases):
    product = _PRODUCTS[keras.backend.backend()]
    alike = len({bias is None for bias in biases}) == 1
    # On PyTorch putting the matrices together costs what one product saves.
    together = keras.backend.backend() != "torch"
    if len(matrices) == 1 or not alike or not together:
        return [
            product(rows, matrix, bias)
            for matrix, bias in zip(matrices, biases, strict=True)
        ]
    bias = None
    if biases[0] is not None:
        bias = keras.ops.concatenate(biases)
    y = product(rows, keras.ops.concatenate(matrices, axis=1), bias)
    ends = np.cumsum([matrix.shape[1] for matrix in matrices])[:-1]
    return keras.ops.split(y, ends.tolist(), axis=1)


def _torch(rows, matrix, bias):
    return rows @ matrix if bias is None else torch.addmm(bias, rows, matrix)


def _tensorflow(rows, matrix, bias):
    product = tf.matmul(rows, matrix)
    return product if bias is None else tf.nn.bias_add(product, bias)


_PRODUCTS = {"tensorflow": _tensorflow, "torch": _torch}
