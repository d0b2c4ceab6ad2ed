"""Caches the result of a function of variables until one of them changes."""

import operator
import weakref

import keras

from keras_attn.backend.compiling import compiled

_kept = weakref.WeakKeyDictionary()


def cached_until_update(function, variables, owner, key):
    """Calls a function of variables, or returns its cached result.

    JAX arrays are immutable: while the variables hold the same arrays, the
    cached result is valid. Other backends write into variables in place, so
    the function is called every time.

    Args:
        function: takes nothing, returns a nest of tensors.
        variables: list of `keras.Variable` that the function reads.
        owner: object whose lifetime the cached result has; the function must
            not reference it.
        key: hashable. Identifies the function among those of the owner.

    Returns:
        What the function returns.
    """
    if keras.backend.backend() != "jax":
        return compiled(function, variables, owner, key)()
    arrays = [variable.value for variable in variables]
    kept = _kept.setdefault(owner, {})
    known, made = kept.get(key, ((), None))
    # Weak references: the arrays of an earlier training step would take up
    # memory until the next call.
    known = [reference() for reference in known]
    if len(known) != len(arrays) or not all(map(operator.is_, known, arrays)):
        made = compiled(function, variables, owner, key)()
        kept[key] = [weakref.ref(array) for array in arrays], made
    return made
