"""Captures of single functions, for tests."""

import types

from keras_attn.backend import Capturing, programs_of


def captured_step(function, variables, fixed=0):
    """Captures a method for its object, or a function for itself."""
    owner, key = function, None
    if isinstance(function, types.MethodType):
        owner, key = function.__self__, function.__func__
    return Capturing(programs_of(owner, variables)).step(
        function, key, fixed=fixed
    )
