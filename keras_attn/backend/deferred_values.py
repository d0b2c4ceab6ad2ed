"""Models whose weights get their first values from a file."""

from collections.abc import Callable
from typing import Any

import keras


class DeferredValues(keras.StatelessScope):
    """Scope in which new variables have no values; they get them at its end.

    A model that is made in the scope takes no memory for its weights, and draws
    no random numbers for those that `give` names. At the end of the scope, each
    variable gets its value before the next one is computed, so at most one
    value is in memory twice. Variables without a given value are initialized as
    usual.

    An error of a function, or a value of another shape, is raised at the end of
    the scope, when all variables have values.

    Examples:
        >>> from keras_attn.backend import DeferredValues
        >>> with DeferredValues() as scope:
        ...     layer = keras.layers.Dense(2, use_bias=False)
        ...     layer.build((None, 3))
        ...     scope.give(layer.kernel, lambda: np.ones((3, 2), "float32"))
        >>> layer.kernel.numpy().sum()
        np.float32(6.0)
    """

    def __init__(self) -> None:
        super().__init__()
        self._error = None

    def give(
        self, variable: keras.Variable, function: Callable[..., Any]
    ) -> None:
        """Sets the value that a variable will have.

        Args:
            variable: `keras.Variable`, created in this scope.
            function: function without arguments that returns a NumPy array of
                the variable's shape.
        """

        def value(shape, dtype=None):
            if self._error is None:
                try:
                    return _of_shape(shape, function(), dtype)
                except Exception as error:
                    # Keras keeps the variables that wait for a value in a list
                    # that it empties only after the last one.
                    self._error = error
            return keras.ops.zeros(shape, dtype)

        # Keras has no public way to replace it (as of Keras 3.15.1).
        variable._initializer = value

    def __exit__(
        self, kind: str | None = None, error: Any = None, traceback: Any = None
    ) -> None:
        """Gives all variables their values."""
        # After an error in the scope, no given value is computed.
        self._error = error
        super().__exit__(kind, error, traceback)
        if error is None and self._error is not None:
            raise self._error


def _of_shape(shape, value, dtype):
    if value.shape != tuple(shape):
        raise ValueError(
            f"A value must have the shape of its variable, {tuple(shape)}. "
            f"Received: {value.shape}"
        )
    return keras.ops.convert_to_tensor(value, dtype)
