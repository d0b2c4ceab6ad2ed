"""Lists reads of tensors on the host, as if all were on an accelerator."""

import contextlib
import inspect
import os
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.backend import inspection

# Functions that read numbers which are on the CPU anyway: the counter of a loop
# over time, and, in Keras as of Keras 3.15.1, the size and rank of a tensor,
# the dilation of a convolution, and the constants of a Fourier transform.
_ON_CPU = (
    ("keras_attn/backend/scan.py", ""),
    ("keras/src/backend/torch/rnn.py", ""),
    ("keras/src/backend/tensorflow/rnn.py", ""),
    ("keras/src/backend/tensorflow/math.py", "stft"),
    ("keras/src/backend/tensorflow/nn.py", "_conv"),
    ("keras/src/backend/tensorflow/nn.py", "ctc_loss"),
    ("keras/src/backend/tensorflow/numpy.py", "argsort"),
    ("keras/src/backend/tensorflow/numpy.py", "max"),
    ("keras/src/backend/tensorflow/numpy.py", "min"),
    ("keras/src/backend/tensorflow/numpy.py", "sort"),
)
_BACKENDS = ("jax", "tensorflow", "torch")
_METHODS = (
    "__array__",
    "__bool__",
    "__complex__",
    "__float__",
    "__index__",
    "__int__",
    "__iter__",
    "cpu",
    "item",
    "numpy",
    "tolist",
    "_numpy",
    "_value",
)
# Operators of PyTorch whose output depends on values, if only in its shape.
_OPERATORS = (
    "_local_scalar_dense",
    "equal",
    "is_nonzero",
    "masked_select",
    "nonzero",
    "_unique2",
)


@contextlib.contextmanager
def list_host_reads(folders: Sequence[Any] | None = None) -> Iterator[Any]:
    """Lists the reads of tensors on the host while this scope is open.

    In it, no tensor counts as being on the host. Each entry is a str: the kind
    of the read and the innermost lines of the chosen folders.

    Args:
        folders: list of paths. Only reads below a line of one of them are
            listed, in code of the backend and of Keras too. Default None: all
            reads, with the lines that called the backend.

    Yields:
        List of str, which grows with each read.
    """
    found = []
    top = None
    if folders is not None:
        top = [f"{os.path.abspath(folder)}/" for folder in folders]

    def read(kind):
        lines, frame = [], inspect.currentframe()
        while frame is not None and _is_of_backend(frame):
            frame = frame.f_back
        if frame is None:
            return
        for file, name in _ON_CPU:
            code = frame.f_code
            if code.co_filename.endswith(file) and name in ("", code.co_name):
                return
        for caller in _callers(frame):
            file = caller.f_code.co_filename
            if top is None:
                lines.append(f"{_short(file)}:{caller.f_lineno}")
            else:
                lines += [
                    f"{file.removeprefix(folder)}:{caller.f_lineno}"
                    for folder in top
                    if file.startswith(folder)
                ]
        if lines:
            found.append(f"{kind} in {' < '.join(lines[:3])}")

    with contextlib.ExitStack() as scope:
        _replace(scope, inspection, "is_on_host", lambda tensor: False)
        if keras.backend.backend() == "torch":
            _enter_torch_modes(scope, read)
        else:
            _patch_methods(scope, read)
        yield found


def _replace(scope, owner, name, value):
    """Sets an attribute until a scope is closed."""
    scope.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, value)


def _callers(frame):
    """Yields a frame and those that called it, without those of this file."""
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame
        frame = frame.f_back


def _short(file):
    return "/".join(file.split(os.sep)[-2:])


def _is_of_backend(frame):
    """Returns whether a frame is of this file or of the backend."""
    name = frame.f_globals.get("__name__", "")
    return name == __name__ or name.partition(".")[0] in _BACKENDS


def _enter_torch_modes(scope, read):
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import (  # as of PyTorch 2.13.0
        TorchDispatchMode,
    )

    class Methods(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            name = getattr(function, "__name__", "")
            if name in _METHODS and not _is_meta(args):
                read(name)
            return function(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function.overloadpacket.__name__
            if name in _OPERATORS and not _is_meta(args):
                read(name)
            return function(*args, **(kwargs or {}))

    scope.enter_context(Methods())
    scope.enter_context(Operators())


def _is_meta(args):
    return any(getattr(arg, "is_meta", False) for arg in args)


def _patch_methods(scope, read):
    if keras.backend.backend() == "jax":
        # Private, as of JAX 0.10.2, like that of TensorFlow.
        from jax._src.array import ArrayImpl as Tensor
    else:
        # Private, as of TensorFlow 2.21.0.
        from tensorflow.python.framework.ops import (
            _EagerTensorBase as Tensor,
        )
    for name in _METHODS:
        method = vars(Tensor).get(name)
        if isinstance(method, property):
            _replace(scope, Tensor, name, property(_noted(method.fget, read)))
        elif method is not None:
            _replace(scope, Tensor, name, _noted(method, read))
    for name in ("array", "asarray"):
        # NumPy reads an array of JAX on a CPU without calling a method.
        _replace(scope, np, name, _noted(getattr(np, name), read, Tensor))


def _noted(function, read, kind=object):
    def noting(x=None, *args, **kwargs):
        if isinstance(x, kind):
            read(function.__name__)
        return function(x, *args, **kwargs)

    return noting
