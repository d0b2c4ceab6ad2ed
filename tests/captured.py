"""One function captured by itself, for tests of what a capture does."""

import types

from keras_attn.backend import Capturing


def captured_step(function, variables, fixed=0):
    """Captures a method for its object, or a function that is kept."""
    owner, key = function, None
    if isinstance(function, types.MethodType):
        owner, key = function.__self__, function.__func__
    return Capturing(owner, variables).step(function, key, fixed=fixed)
