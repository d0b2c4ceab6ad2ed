"""Types of the annotations. Shapes and units are in the docstrings.

`Tensor` is `Any`: the tensors of TensorFlow, JAX and PyTorch, the symbolic ones
of Keras and NumPy arrays have no base class or protocol in common.
"""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

# A result: a tensor of the backend, or a symbolic one.
Tensor: TypeAlias = Any
# An argument: such a tensor, a variable, a NumPy array, or a list of numbers.
TensorLike: TypeAlias = Any
# One tensor, or a dict, list or tuple of nests.
Nest: TypeAlias = Any
# None: unknown until the layer is called.
Shape: TypeAlias = tuple[int | None, ...]
PathLike: TypeAlias = str | os.PathLike[str]
# A name in Keras, a config, or an object.
Initializer: TypeAlias = Any
Activation: TypeAlias = str | Callable[..., Any]
# "error", "warn", "skip", or a function of a `BadLine`.
BadLines: TypeAlias = str | Callable[[Any], Any]
