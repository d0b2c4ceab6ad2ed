"""Hooks on every layer call of a model during one eager call."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_attn.layers import MultiHeadAttention, ScoredAttention
from keras_attn.models.bidirectional import Bidirectional

# Layers that are tested as a whole. Inside recurrent layers the data are not
# laid out like the batch: one time step at a time, or reversed. Inside
# attention layers, which sublayer leaks is of no interest.
_CLOSED = (
    Bidirectional,
    keras.layers.Bidirectional,
    keras.layers.GroupQueryAttention,
    keras.layers.MultiHeadAttention,
    keras.layers.RNN,
    keras.layers.TimeDistributed,
    MultiHeadAttention,
    ScoredAttention,
)

# Two threads that patch one method would each restore the other's patch.
_one_at_a_time = threading.RLock()


class Watcher:
    """Observes, and may change, the inputs and outputs of layers.

    Base class: subclasses override `entered` and `left`.
    """

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._calls = {}

    def entered(
        self, key: Any, layer: Any, args: Any, kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Returns the arguments to call a layer with.

        Args:
            key: (int, int), the layer's identity and the number of this call.
            layer: the layer. `stack` holds the enclosing layers.
            args: positional arguments.
            kwargs: keyword arguments.

        Returns:
            Arguments and keyword arguments.
        """
        return args, kwargs

    def left(self, key: Any, layer: Any, outputs: Any) -> Any:
        """Returns the outputs that a layer returns; see `entered`."""
        return outputs

    def call(
        self,
        layer: Any,
        function: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Calls a layer between `entered` and `left`."""
        if any(_closed(around) for around in self.stack):
            return function(layer, *args, **kwargs)
        number = self._calls.get(id(layer), 0)
        self._calls[id(layer)] = number + 1
        key = id(layer), number
        args, kwargs = self.entered(key, layer, args, kwargs)
        self.stack.append(layer)
        try:
            outputs = function(layer, *args, **kwargs)
        finally:
            self.stack.pop()
        return self.left(key, layer, outputs)

    def counts(self) -> dict[int, int]:
        """Returns the number of calls of each layer, by its identity."""
        return dict(self._calls)


def _closed(layer):
    return isinstance(layer, _CLOSED) or getattr(layer, "go_backwards", False)


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Context in which a watcher sees every layer call of this thread.

    Keras has no hooks on calls (as of Keras 3.15.1). Python looks up `__call__`
    on the class, so it is patched there and restored when the scope ends.
    Another thread that enters `watched` waits until then; threads that only
    call layers do not.

    Args:
        watcher: `Watcher`.
    """
    thread = threading.get_ident()
    with _one_at_a_time:
        function = keras.layers.Layer.__call__

        @functools.wraps(function)
        def call(layer, *args, **kwargs):
            if threading.get_ident() != thread:
                return function(layer, *args, **kwargs)
            return watcher.call(layer, function, args, kwargs)

        keras.layers.Layer.__call__ = call
        try:
            yield
        finally:
            keras.layers.Layer.__call__ = function
