"""Checks of call arguments before Keras converts them."""

import inspect
from typing import Any

import numpy as np

from keras_attn import checks


class CheckedCall:
    """Mixin of layers: call arguments that must be tensors are tensors.

    `Layer.__call__` passes lists, text and objects on to `call`, or rejects
    them without the name of the argument (as of Keras 3.15.1). A subclass lists
    its own arguments. A `call` outside the package is not checked.
    """

    # Names of the arguments of `call` that must be tensors, or None if that is
    # their default, and of those that must be bool.
    _tensors: tuple[str, ...] = ()
    _flags: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        parameters = list(inspect.signature(cls.call).parameters.values())[1:]
        own = cls.__dict__.get("call")
        if own and not own.__module__.startswith("keras_attn."):
            # The user's own arguments, which may have the same names.
            cls._tensors = cls._flags = ()
        cls._order = tuple(parameter.name for parameter in parameters)
        cls._required = frozenset(
            parameter.name
            for parameter in parameters
            if parameter.default is parameter.empty
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Checks the arguments, then calls the layer."""
        for name, value in zip(self._order, args, strict=False):
            self._check_argument(name, value)
        for name, value in kwargs.items():
            self._check_argument(name, value)
            if isinstance(value, np.bool_):
                # Keras would convert it to a tensor (as of Keras 3.15.1).
                kwargs[name] = bool(value)
        return super().__call__(*args, **kwargs)

    def _check_argument(self, name, value):
        if name in self._tensors:
            if value is not None or name in self._required:
                checks.int32(name, checks.tensor(name, value))
        elif name in self._flags and not (
            # Keras's layers take 0 and 1 too.
            isinstance(value, int) and value in (0, 1)
        ):
            checks.boolean(name, value)
