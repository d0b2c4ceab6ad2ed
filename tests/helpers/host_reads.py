"""Lists reads of tensors on the host, as if all were on an accelerator."""

import contextlib
import sys

import keras
import numpy as np

import keras_attn
from keras_attn.backend import inspection

# Functions that read numbers which are on the CPU anyway: the counter of a loop
# over time, and, in Keras as of Keras 3.15.1, the size of a tensor, the
# dilation of a convolution, and the constants of a Fourier transform.
_ON_CPU = (
    ("keras_attn/backend/scan.py", ""),
    ("keras/src/backend/torch/rnn.py", ""),
    ("keras/src/backend/tensorflow/rnn.py", ""),
    ("keras/src/backend/tensorflow/math.py", "stft"),
    ("keras/src/backend/tensorflow/nn.py", "_conv"),
    ("keras/src/backend/tensorflow/nn.py", "ctc_loss"),
    ("keras/src/backend/tensorflow/numpy.py", "max"),
    ("keras/src/backend/tensorflow/numpy.py", "min"),
)
_LIBRARY = f"{keras_attn.__path__[0]}/"
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
def host_reads(monkeypatch):
    """Lists the reads of tensors on the host while this scope is open.

    In it, no tensor counts as being on the host. Only reads below a frame of
    the library are listed, in Keras's code too.

    Args:
        monkeypatch: the pytest fixture.

    Yields:
        List of str: for each read its kind and the innermost lines of the
        library.
    """
    found = []

    def read(kind):
        frames, frame = [], sys._getframe(1)
        while _is_of_backend(frame.f_code.co_filename):
            frame = frame.f_back
        for file, name in _ON_CPU:
            code = frame.f_code
            if code.co_filename.endswith(file) and name in ("", code.co_name):
                return
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_LIBRARY):
                line = f"{file.removeprefix(_LIBRARY)}:{frame.f_lineno}"
                frames.append(line)
            frame = frame.f_back
        if frames:
            found.append(f"{kind} in {' < '.join(frames[:3])}")

    with monkeypatch.context() as patch:
        patch.setattr(inspection, "is_on_host", lambda tensor: False)
        if keras.backend.backend() == "torch":
            with _torch_modes(read):
                yield found
        else:
            _patch_methods(patch, read)
            yield found


def _is_of_backend(file):
    """Returns whether a file is this one or one of the backend."""
    backend = any(f"/{name}/" in file for name in ("torch", "tensorflow"))
    return file == __file__ or (backend and "/keras/" not in file)


def _torch_modes(read):
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

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

    stack = contextlib.ExitStack()
    stack.enter_context(Methods())
    stack.enter_context(Operators())
    return stack


def _is_meta(args):
    return any(getattr(arg, "is_meta", False) for arg in args)


def _patch_methods(patch, read):
    if keras.backend.backend() == "jax":
        from jax._src.array import ArrayImpl as Tensor
    else:
        from tensorflow.python.framework.ops import (
            _EagerTensorBase as Tensor,
        )
    for name in _METHODS:
        method = vars(Tensor).get(name)
        if isinstance(method, property):
            patch.setattr(Tensor, name, property(_noted(method.fget, read)))
        elif method is not None:
            patch.setattr(Tensor, name, _noted(method, read))
    for name in ("array", "asarray"):
        # NumPy reads an array of JAX on a CPU without calling a method.
        patch.setattr(np, name, _noted(getattr(np, name), read, Tensor))


def _noted(function, read, kind=object):
    def noting(x=None, *args, **kwargs):
        if isinstance(x, kind):
            read(function.__name__)
        return function(x, *args, **kwargs)

    return noting
