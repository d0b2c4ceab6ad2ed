"""Losses that layers add inside a rematerialized function."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import keras

from keras_attn.typing import Tensor


class _State(threading.local):
    """The losses of the innermost open scope of a thread, or None."""

    def __init__(self):
        self.losses = None


_state = _State()


@contextlib.contextmanager
def collect_losses() -> Iterator[list[Any]]:
    """Collects the losses of `add_loss` in this module in a list.

    A rematerialized function must return its losses: it runs twice, so a layer
    would add them twice on PyTorch; on JAX and TensorFlow they would leave the
    function without a gradient, or raise (as of Keras 3.15.1).
    """
    before, _state.losses = _state.losses, []
    try:
        yield _state.losses
    finally:
        _state.losses = before


def add_loss(layer: keras.layers.Layer, loss: Tensor) -> None:
    """Adds a loss to a layer, or to the scope that collects them.

    Args:
        layer: `keras.layers.Layer`.
        loss: float scalar.
    """
    if _state.losses is None:
        layer.add_loss(loss)
    else:
        _state.losses.append(loss)
