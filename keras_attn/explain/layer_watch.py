"""Watching every layer of a model during one eager call."""

import contextlib
import functools
import threading

import keras

from keras_attn.layers import MultiHeadAttention, ScoredAttention

# Layers that are judged as a whole. What runs inside recurrent ones is not laid
# out as the batch is: one time step at a time, or backwards. Of an attention
# nobody asks whether its softmax or its last projection is to blame.
_CLOSED = (
    keras.layers.Bidirectional,
    keras.layers.GroupQueryAttention,
    keras.layers.MultiHeadAttention,
    keras.layers.RNN,
    keras.layers.TimeDistributed,
    MultiHeadAttention,
    ScoredAttention,
)

# Two threads that replace one method would each put back what the other left.
_one_at_a_time = threading.RLock()


class Watcher:
    """Sees, and may change, what goes into layers and what comes out.

    Abstract: `entered` and `left` are for subclasses.
    """

    def __init__(self):
        self.stack = []
        self._calls = {}

    def entered(self, key, layer, args, kwargs):
        """Returns the arguments that a layer is to be called with.

        Args:
            key: (int, int), the layer's identity and the number of this call.
            layer: the layer. `stack` holds those around it.
            args: positional arguments.
            kwargs: keyword arguments.

        Returns:
            Arguments and keyword arguments.
        """
        return args, kwargs

    def left(self, key, layer, outputs):
        """Returns what a layer is to return; see `entered`."""
        return outputs

    def call(self, layer, function, args, kwargs):
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

    def counts(self):
        """Returns how often each layer was called, by its identity."""
        return dict(self._calls)


def _closed(layer):
    return isinstance(layer, _CLOSED) or getattr(layer, "go_backwards", False)


@contextlib.contextmanager
def watched(watcher):
    """Lets a watcher see every layer that this thread calls in the scope.

    A layer's `__call__` is looked up on its class, so it is replaced there,
    and put back when the scope ends, however it ends. Another thread that wants
    to watch waits for that; one that only calls layers does not.

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
