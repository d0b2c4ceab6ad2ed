"""Corrections of Keras while it calibrates GPTQ and AWQ."""

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from keras import ops

# Private: no public module has the algorithms, as of Keras 3.15.1.
from keras.src.quantizers import awq, gptq, quantizers


@contextlib.contextmanager
def calibration(layers: Sequence[Any]) -> Iterator[None]:
    """Makes layers show their inputs to Keras while it calibrates them.

    Three corrections of Keras: it observes `call`, which `__call__` of a layer
    with a mode does not call, so GPTQ and AWQ would round without having seen
    an activation (as of Keras 3.15.1, keras-team/keras#23512). Its GPTQ then
    increases the error, because it corrects with rows of the inverse Hessian
    instead of its Cholesky factor (as of Keras 3.15.1, keras-team/keras#23481).
    And the zero point of weights of one sign overflows (#23512 again).

    Args:
        layers: list of `Dense` or `EinsumDense`.
    """

    def make(layer, name):
        original, flag = getattr(layer, name), f"is{name[:-5]}_calibrated"

        def observed(inputs, training=None):
            if getattr(layer, flag, False):
                return original(inputs, training=training)
            # Looked up at each call: Keras replaces it.
            return layer.call(inputs, training=training)

        return observed

    # Private: what `__call__` calls in these modes, as of Keras 3.15.1.
    names = "_gptq_call", "_awq_call"
    try:
        for layer in layers:
            for name in names:
                object.__setattr__(layer, name, make(layer, name))
        with _cholesky_corrections(), _zero_in_every_range():
            yield
    finally:
        for layer in layers:
            for name in names:
                vars(layer).pop(name, None)


@contextlib.contextmanager
def _cholesky_corrections():
    """Replaces the correction of errors in Keras's GPTQ.

        H^-1 = U^T U,  W[:, j+1:] -= (w_j - q_j) / U[j, j] * U[j, j+1:]

    Frantar et al. 2023, https://arxiv.org/abs/2210.17323, algorithm 1.
    """
    name = "gptq_quantize_matrix"
    original = getattr(gptq, name)

    def corrected(
        weights,
        inv_hessian,
        *,
        activation_order=False,
        order_metric=None,
        **options,
    ):
        inverse = ops.convert_to_numpy(inv_hessian).astype("float64")
        order = np.arange(len(inverse))
        if activation_order:
            metric = ops.convert_to_numpy(order_metric)
            order = np.argsort(-metric, kind="stable")
        inverse = inverse[np.ix_(order, order)]
        factor = np.linalg.cholesky((inverse + inverse.T) / 2).T
        quantized, scale, zero, groups = original(
            ops.take(weights, order, axis=1),
            inv_hessian=ops.convert_to_tensor(factor, "float32"),
            **options,
        )
        back = np.argsort(order)
        return (
            ops.take(quantized, back, axis=1),
            scale,
            zero,
            ops.take(groups, back, axis=0),
        )

    # Later versions take the Hessian, and factorize it themselves.
    if "inv_hessian" in inspect.signature(original).parameters:
        with _replaced([gptq], name, corrected):
            yield
    else:
        yield


def _zero_in_every_range():
    """Makes the range of each group of weights include 0, as in the papers."""
    name = "compute_quantization_parameters"
    original = getattr(quantizers, name)

    def with_zero(x, *, group_size=-1, **options):
        values = np.array(ops.convert_to_numpy(x))
        width = group_size if group_size > 0 else values.shape[1]
        for start in range(0, values.shape[1], width):
            group = values[:, start : start + width]
            for row in group:
                # Only the least and the greatest value count.
                if row.min() > 0:
                    row[row.argmin()] = 0
                elif row.max() < 0:
                    row[row.argmax()] = 0
        x = ops.convert_to_tensor(values)
        return original(x, group_size=group_size, **options)

    return _replaced([quantizers, awq], name, with_zero)


@contextlib.contextmanager
def _replaced(modules, name, function):
    """Replaces a function of modules of Keras."""
    originals = [getattr(module, name) for module in modules]
    try:
        for module in modules:
            setattr(module, name, function)
        yield
    finally:
        for module, original in zip(modules, originals, strict=True):
            setattr(module, name, original)
