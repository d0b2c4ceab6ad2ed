"""Caches the result of a function of variables until one of them changes."""

import operator
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

from keras_attn.backend.compiling import compiled
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.owned_programs import OwnedPrograms


def cached_until_update(
    function: Callable[..., Any], programs: "OwnedPrograms", key: TensorLike
) -> Any:
    """Calls a function of variables, or returns its cached result.

    JAX arrays are immutable: while the variables hold the same arrays, the
    cached result is valid. Other backends write into variables in place, so
    the function is called every time.

    Args:
        function: takes nothing, returns a nest of tensors.
        programs: `OwnedPrograms` of the object whose variables the function
            reads and whose lifetime the cached result has; the function must
            not reference it.
        key: hashable. Identifies the function among those of the object.

    Returns:
        What the function returns.
    """
    variables = programs.variables
    if keras.backend.backend() != "jax":
        return compiled(function, variables, programs, key)()
    arrays = [variable.value for variable in variables]
    cached = programs.get(("cached", key), _Cached)
    # Weak references: the arrays of an earlier training step would take up
    # memory until the next call.
    known = [reference() for reference in cached.arrays]
    if len(known) != len(arrays) or not all(map(operator.is_, known, arrays)):
        cached.result = compiled(function, variables, programs, key)()
        cached.arrays = [weakref.ref(array) for array in arrays]
    return cached.result


class _Cached:
    def __init__(self):
        self.arrays, self.result = (), None
