"""What a function makes of variables alone, kept until one of them changes."""

import operator
import weakref

import keras

from keras_attn.backend.compiling import compiled

_kept = weakref.WeakKeyDictionary()


def cached_until_update(function, variables, owner, key):
    """Calls a function that reads nothing but variables, when it has to.

    On JAX an array never changes: as long as the variables hold the same ones,
    so does what was made of them. Other backends write into variables, and the
    function is called every time.

    Args:
        function: takes nothing, returns a nest of tensors.
        variables: list of `keras.Variable` that the function reads.
        owner: object with which the values are kept; the function must not
            hold it.
        key: hashable. Functions of one owner and one key are the same.

    Returns:
        What the function returns.
    """
    if keras.backend.backend() != "jax":
        return compiled(function, variables, owner, key)()
    arrays = [variable.value for variable in variables]
    kept = _kept.setdefault(owner, {})
    known, made = kept.get(key, ((), None))
    # Not the arrays themselves: those of a step of training long ago would
    # take up memory until the next call.
    known = [reference() for reference in known]
    if len(known) != len(arrays) or not all(map(operator.is_, known, arrays)):
        made = compiled(function, variables, owner, key)()
        kept[key] = [weakref.ref(array) for array in arrays], made
    return made
