"""Averaging of weights."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.typing import PathLike


def averaged_weights(model: keras.Model) -> list[Any]:
    """Returns the floating-point weights, without counters and seeds."""
    return [v for v in model.weights if keras.backend.is_float_dtype(v.dtype)]


def copies(variables: Any) -> list[Any]:
    """Returns the values of variables as NumPy arrays."""
    return [keras.ops.convert_to_numpy(v.value) for v in variables]


def set_to_mean(
    variables: Sequence[keras.Variable], checkpoints: Sequence[Any]
) -> None:
    """Sets variables to the mean of checkpoints, summed in float64.

    Args:
        variables: list of `keras.Variable`.
        checkpoints: list of lists of arrays, one array per variable.
    """
    for variable, values in zip(
        variables, zip(*checkpoints, strict=True), strict=True
    ):
        total = np.zeros(variable.shape, "float64")
        for value in values:
            total += value
        _assign(variable, total / len(values))


def set_to_mean_of_files(model: keras.Model, paths: Sequence[PathLike]) -> None:
    """Sets the floating-point weights of a model to the mean of files.

    Args:
        model: a built `keras.Model`.
        paths: list of str, at least one.

    Raises:
        ValueError: a file does not fit the model, which is then unchanged.
    """
    averaged = averaged_weights(model)
    # Files of compiled models also contain seeds and the optimizer.
    optimizer = getattr(model, "optimizer", None)
    everything = list(model.variables)
    if optimizer is not None:
        everything += optimizer.variables
    before = copies(everything)
    totals = [np.zeros(v.shape, "float64") for v in averaged]
    try:
        for path in paths:
            try:
                model.load_weights(path)
            except (KeyError, OSError, ValueError) as error:
                raise ValueError(
                    "`paths` must name weights files of this model. "
                    f"Received: {path} ({' '.join(str(error).split())})"
                ) from error
            for total, variable in zip(totals, averaged, strict=True):
                total += keras.ops.convert_to_numpy(variable.value)
    finally:
        for variable, value in zip(everything, before, strict=True):
            variable.assign(value)
    for variable, total in zip(averaged, totals, strict=True):
        _assign(variable, total / len(paths))


def _assign(variable, value):
    variable.assign(keras.ops.convert_to_tensor(value, dtype=variable.dtype))
