"""Dense layers as one fused product and bias."""

import math
from typing import Any

import keras

from keras_attn.backend.inspection import known_size
from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf

# Tokens per row from which calling the layer is as fast on XLA. Decoding steps
# have fewer, with all hypotheses of a source in one row.
_FEW = 17


def apply_dense(layer: Any, x: TensorLike, contracted: int = 1) -> Tensor:
    """Applies a built `Dense` or `EinsumDense` whose kernel is one matrix.

    y = f(x W + b). On PyTorch, which executes eagerly, this is one `addmm`, on
    TensorFlow a matrix product and a bias addition: Keras's layers transpose,
    multiply and add in three steps, and the overhead of a layer call is as
    large as a small product (as of Keras 3.15.1). On JAX, and for a quantized
    layer, the layer is called; except where a decoding step contracts heads,
    since XLA would transpose the kernel at each step (as of JAX 0.10.2).

    Queries, keys and values of one sequence are three products: concatenating
    their matrices at each step costs more than a single product saves, on every
    backend (`make benchmarks TABLE=projections`).

    Args:
        layer: `keras.layers.Dense` or `keras.layers.EinsumDense`, with a
            kernel (inputs..., features...) and an optional bias (features...).
        x: float (..., inputs...).
        contracted: int. Number of input axes.

    Returns:
        Float (..., features...).
    """
    name = keras.backend.backend()
    if not is_plain(layer, x.dtype):
        return layer(x)
    few = (known_size(x.shape[1]) or _FEW) < _FEW
    if name == "jax" and not (contracted > 1 and few):
        return layer(x)
    matrix, bias = weights_of(layer, x.dtype, contracted)
    y = product(keras.ops.reshape(x, (-1, matrix.shape[0])), matrix, bias)
    leading = keras.ops.shape(x)[: len(x.shape) - contracted]
    features = layer.kernel.shape[contracted:]
    y = keras.ops.reshape(y, (*leading, *features))
    return y if layer.activation is None else layer.activation(y)


def is_plain(layer: Any, dtype: str) -> bool:
    """Returns whether a layer only multiplies and adds, in this dtype."""
    return (
        layer.quantization_mode is None
        and layer.activity_regularizer is None
        and keras.backend.standardize_dtype(dtype) == layer.compute_dtype
    )


def weights_of(layer: Any, dtype: str, contracted: int) -> Any:
    """Returns the kernel of a plain layer as one matrix, and its bias.

    Args:
        layer: as for `apply_dense`.
        dtype: dtype of the result.
        contracted: int. Number of input axes of the kernel.

    Returns:
        Float (D, F), and float (F,) or None.
    """
    # The property, not the variable: it includes LoRA's update.
    kernel = keras.ops.cast(layer.kernel, dtype)
    features = math.prod(kernel.shape[contracted:])
    matrix = keras.ops.reshape(kernel, (-1, features))
    if layer.bias is None:
        return matrix, None
    return matrix, keras.ops.reshape(keras.ops.cast(layer.bias, dtype), (-1,))


def product(
    rows: TensorLike, matrix: TensorLike, bias: TensorLike | None
) -> Any:
    """Returns `rows @ matrix + bias`, float (R, F), in one step.

    Args:
        rows: float (R, D).
        matrix: float (D, F).
        bias: float (F,), or None.
    """
    return _PRODUCTS[keras.backend.backend()](rows, matrix, bias)


def _torch(rows, matrix, bias):
    return rows @ matrix if bias is None else torch.addmm(bias, rows, matrix)


def _tensorflow(rows, matrix, bias):
    product = tf.matmul(rows, matrix)
    return product if bias is None else tf.nn.bias_add(product, bias)


def _jax(rows, matrix, bias):
    product = rows @ matrix
    return product if bias is None else product + bias


_PRODUCTS = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
