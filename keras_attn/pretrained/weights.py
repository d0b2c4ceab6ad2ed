"""Conversion of model weights from and to the tensors of a family."""

import collections
import math
import time
import warnings
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from keras_attn.pretrained.family import some

if TYPE_CHECKING:
    from keras_attn.backend.deferred_values import DeferredValues
    from keras_attn.pretrained.checkpoint import Checkpoint
    from keras_attn.pretrained.config import Config
    from keras_attn.pretrained.family import Family


# Constants in half-precision files are rounded, like the weights.
_ROUNDED = 2e-3
# Loading that takes longer shows its progress.
_SECONDS = 2.0


def fill(
    model: keras.Model,
    family: "Family",
    config: "Config",
    file: "Checkpoint",
    values: "DeferredValues",
    allow_nonfinite: bool = False,
) -> None:
    """Takes the weights of a new model from a file.

    The weights are read at the end of the scope `values`, one tensor at a time,
    and a tensor with NaN or infinite values, or that differs from its copy,
    raises ValueError there. If reading takes more than two seconds, a progress
    bar appears.

    Args:
        model: the model, of a class of the family, made in the scope.
        family: `Family`.
        config: `Config`.
        file: `Checkpoint`.
        values: `DeferredValues`.
        allow_nonfinite: bool. Whether weights may be NaN or infinite.

    Raises:
        ValueError: a tensor is missing, has the wrong shape or dtype, or is
            unknown to the model.
    """
    weights = _by_path(model, family)
    names = family.adapt(config, family.tensors(model))
    found = {name: _found(name, file) for name in names}
    for name in found:
        expected = _shape_in_file(name, weights[name.ours])
        for theirs in found[name]:
            if file.shape(theirs) != expected:
                raise ValueError(
                    f"`{theirs}` in {file.file_name(theirs)} must have shape "
                    f"{expected}. Received: {file.shape(theirs)}"
                )
            file.check_dtype(theirs)
    known = {theirs for names in found.values() for theirs in names}
    constants = family.constants(model)
    unknown = sorted(set(file.names) - known - set(constants))
    skipped = [x for x in unknown if x.startswith(family.head_prefixes)]
    unknown = sorted(set(unknown) - set(skipped))
    if unknown:
        raise ValueError(
            f"{file.path.name} must hold the tensors of a "
            f"{family.model_type} model and no others. "
            f"Received: {some(unknown)}"
        )
    for theirs in sorted(constants.keys() & file.names):
        if constants[theirs] is not None:
            _check_constant(theirs, constants[theirs], file)
    progress = _Progress(len(found))
    for path, rows in _rows(names).items():

        def read(rows=rows, shape=tuple(weights[path].shape)):
            arrays = []
            for name in rows:
                array = _read(name, found[name], file, allow_nonfinite)
                row = _shape_of_row(name, shape)
                arrays.append(name.layout.from_file(array, row))
                progress.step()
            stacked = rows[0].row is not None
            array = np.stack(arrays) if stacked else arrays[0]
            # A tensor of PyTorch keeps the strides of an array.
            return np.ascontiguousarray(array)

        values.give(weights[path], read)
    if skipped:
        warnings.warn(
            f"{file.path.name} holds tensors of heads that a "
            f"{type(model).__name__} does not have; they were skipped: "
            f"{some(skipped)}",
            stacklevel=3,
        )


def _rows(names):
    """Returns the names of each of our weights, by its path, in order."""
    rows = {}
    for name in names:
        rows.setdefault(name.ours, []).append(name)
    return {
        path: sorted(found, key=lambda name: name.row or 0)
        for path, found in rows.items()
    }


def _read(name, theirs, file, allow_nonfinite):
    """Returns the tensor of a `TensorName`, after a look at its copies."""
    theirs, *copies = theirs
    array = file.read(theirs, allow_nonfinite)
    for copy in copies:
        other = file.read(copy, allow_nonfinite)
        if not np.array_equal(array, other, equal_nan=True):
            raise ValueError(
                f"`{copy}` in {file.file_name(copy)} must equal "
                f"`{theirs}`, to which it is tied. Received: other values"
            )
    return array if name.part is None else name.part.take(array)


class _Progress:
    """A progress bar that appears after `_SECONDS`.

    Args:
        count: int. Number of tensors to load.
    """

    def __init__(self, count):
        self._count, self._done, self._start = count, 0, time.monotonic()
        self._bar = None

    def step(self):
        """Counts a tensor as loaded."""
        self._done += 1
        if self._bar is None and time.monotonic() - self._start > _SECONDS:
            self._bar = keras.utils.Progbar(
                self._count, interval=0.5, unit_name="tensor"
            )
        if self._bar:
            self._bar.update(self._done)


def tensor_bytes(model: keras.Model, family: "Family") -> dict[str, Any]:
    """Returns the tensors of a file with the weights of a model.

    Args:
        model: the model, of a class of the family.
        family: `Family`.

    Returns:
        {name: int, its size in float32}.

    Raises:
        ValueError: the family has no name for a weight.
    """
    weights = _by_path(model, family)
    sizes = collections.Counter()
    for name in family.tensors(model):
        shape = weights[name.ours].shape
        sizes[name.theirs] += 4 * math.prod(_shape_of_row(name, shape))
    return dict(sizes)


def collect(
    model: keras.Model, family: "Family", names: set[str]
) -> dict[str, Any]:
    """Returns some tensors of a file with the weights of a model.

    Args:
        model: the model, of a class of the family.
        family: `Family`.
        names: set of str, of those that `tensor_bytes` returns.

    Returns:
        {name: float32 NumPy array}.
    """
    weights = _by_path(model, family)
    parts = {}
    for name in family.tensors(model):
        if name.theirs in names:
            weight = keras.ops.convert_to_tensor(weights[name.ours])
            if name.row is not None:
                weight = weight[name.row]
            array = keras.ops.convert_to_numpy(weight)
            array = name.layout.to_file(array.astype("float32"))
            parts.setdefault(name.theirs, []).append((name.part, array))
    return {
        theirs: np.ascontiguousarray(_joined(found))
        for theirs, found in parts.items()
    }


def _joined(found):
    """Returns a tensor, from pairs of a part and its array."""
    part, array = found[0]
    if part is None:
        return array
    arrays = {part.index: array for part, array in found}
    return part.join([arrays[i] for i in sorted(arrays)])


def _by_path(model, family):
    weights = {variable.path: variable for variable in model.weights}
    named = {name.ours for name in family.tensors(model)}
    if named != weights.keys():
        # These include LoRA adapters and scales of quantized kernels.
        odd = sorted(named ^ weights.keys())
        raise ValueError(
            f"The model must have the weights of a {family.model_type} model, "
            f"neither quantized nor with adapters. Received: {some(odd)}"
        )
    return weights


def _found(name, file):
    found = [x for x in (name.theirs, *name.copies) if x in file.names]
    if not found:
        raise ValueError(
            f"{file.path.name} must hold a tensor `{name.theirs}`. "
            f"Received: {some(sorted(file.names))}"
        )
    return found


def _shape_of_row(name, shape):
    return tuple(shape) if name.row is None else tuple(shape[1:])


def _shape_in_file(name, weight):
    shape = _shape_of_row(name, weight.shape)
    shape = name.layout.to_file(np.empty(shape, "int8")).shape
    return shape if name.part is None else name.part.shape_of_tensor(shape)


def _check_constant(theirs, constant, file):
    shape = file.shape(theirs)
    # Before the values are computed, whose size comes from the config.
    same = shape == constant.shape
    if (
        not same
        or np.abs(file.read(theirs) - constant.values()).max() > _ROUNDED
    ):
        raise ValueError(
            f"`{theirs}` in {file.file_name(theirs)} must agree with "
            f"config.json. Received: shape {shape}"
            + (", other values" if same else f", not {constant.shape}")
        )
