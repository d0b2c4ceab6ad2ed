"""Compiled programs that belong to an object, such as a model."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_attn.backend.python_state import PythonState
from keras_attn.typing import TensorLike

_ATTRIBUTE = "_keras_attn_programs"


def programs_of(
    owner: Any, variables: Sequence[keras.Variable]
) -> "OwnedPrograms":
    """Returns the compiled programs of an object.

    They live in an attribute of the object, are not copied or saved with it,
    and are dropped here if anything has changed that a program reads besides
    its arguments: Python attributes of the object and its parts, the list of
    variables and their dtypes, or a global setting of Keras.

    Args:
        owner: object with a `__dict__`.
        variables: list of `keras.Variable` that its programs read.

    Returns:
        `OwnedPrograms`.
    """
    attributes = vars(owner)
    programs = attributes.get(_ATTRIBUTE)
    if programs is None or programs.owner() is not owner:
        # Not `setattr`, which Keras's layers track.
        programs = attributes[_ATTRIBUTE] = OwnedPrograms(owner)
    programs.renew(variables)
    return programs


class OwnedPrograms:
    """Compiled programs of an object, and what they have read.

    Args:
        owner: the object, referenced weakly; None for a copy, which has no
            programs.
    """

    def __init__(self, owner: Any = None) -> None:
        self.owner: Any = (
            (lambda: None) if owner is None else weakref.ref(owner)
        )
        self.variables: list[Any] = []
        self._signature = self._state = None
        self._kept = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnedPrograms, ()

    def get(self, key: TensorLike, make: Any) -> Any:
        """Returns what `make()` returned for this key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def renew(self, variables: Any) -> None:
        """Drops all programs if something that they read has changed."""
        signature = _signature(variables)
        state = self._state
        if signature == self._signature and state.is_current():
            return
        state = PythonState(self.owner(), _ATTRIBUTE)
        if signature != self._signature or state != self._state:
            self._kept = {}
        # Referenced: the `id` of a freed variable could be reused.
        self.variables = list(variables)
        self._signature, self._state = signature, state

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a function that a compiler traces when it is first needed.

        What has changed since `programs_of` drops the other programs. What the
        function itself changes, such as a counter of its calls, drops none.

        Args:
            function: callable. Must not reference the owner.

        Returns:
            A callable with the arguments and results of `function`.
        """
        # The programs would keep each other alive.
        reference = weakref.ref(self)

        def trace(*args):
            programs = reference()
            if programs is None or programs.owner() is None:
                return function(*args)
            programs.renew(programs.variables)
            result = function(*args)
            programs._state = PythonState(programs.owner(), _ATTRIBUTE)
            return result

        return trace


def _signature(variables):
    """Returns what programs read besides arguments and Python attributes."""
    return (
        tuple(map(id, variables)),
        _kinds(variables),
        keras.config.floatx(),
        keras.config.epsilon(),
        keras.config.dtype_policy().name,
        keras.config.is_flash_attention_enabled(),
        id(keras.distribution.distribution()),
    )


def _kinds(variables):
    # Only PyTorch replaces the values by some of another dtype or device.
    if keras.backend.backend() != "torch":
        return ()
    values = [variable.value for variable in variables]
    return tuple((value.dtype, value.device) for value in values)
