"""Memory carried between batches of `fit` and `evaluate`."""

from typing import Any

import keras
from keras import ops

from keras_attn.models.segment_memory import SegmentMemory


class StatefulMemory(keras.layers.Layer):
    """`SegmentMemory` in variables that are not saved to files.

    Args:
        rows: int. B.
        length: int. M.
        layers: int. Blocks.
        width: int. D.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Examples:
        >>> from keras_attn.models.stateful_memory import StatefulMemory
        >>> carried = StatefulMemory(2, 5, 1, 8)
        >>> tuple(carried.read().states[0].shape)
        (2, 5, 8)
    """

    def __init__(
        self, rows: int, length: int, layers: int, width: int, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.rows = rows
        self._states = [
            self._variable(f"state_{i}", (rows, length, width))
            for i in range(layers)
        ]
        self._token_mask = self._variable("token_mask", (rows, length), "int32")
        self.built = True

    def read(self) -> SegmentMemory:
        """Returns the memory."""
        return SegmentMemory(
            tuple(ops.convert_to_tensor(state) for state in self._states),
            ops.cast(ops.convert_to_tensor(self._token_mask), "bool"),
        )

    def write(self, memory: Any) -> None:
        """Replaces the memory."""
        for variable, state in zip(self._states, memory.states, strict=True):
            _assign(variable, state)
        _assign(self._token_mask, memory.token_mask)

    def save_own_variables(self, store: Any) -> None:
        """Writes nothing: the memory is not a learned weight."""

    def load_own_variables(self, store: Any) -> None:
        """Reads nothing."""

    def _variable(self, name, shape, dtype=None):
        return self.add_weight(
            shape=shape,
            initializer="zeros",
            trainable=False,
            autocast=False,
            dtype=dtype or self.compute_dtype,
            name=name,
        )


def _assign(variable, value):
    # The number of rows may be unknown at compile time.
    value = ops.reshape(ops.cast(value, variable.dtype), variable.shape)
    variable.assign(value)
