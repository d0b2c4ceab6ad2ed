"""A callback that wraps others and saves their states."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_attn import checks

# The state attributes of Keras callbacks, which have no method that returns
# their state as of Keras 3.15.1.
_STATE_ATTRIBUTES = {
    keras.callbacks.EarlyStopping: (
        "best",
        "best_epoch",
        "best_weights",
        "stopped_epoch",
        "wait",
    ),
    keras.callbacks.ModelCheckpoint: ("best",),
    keras.callbacks.ReduceLROnPlateau: ("best", "cooldown_counter", "wait"),
}


class CallbackGroup(keras.callbacks.Callback):
    """Forwards all calls of `fit` to other callbacks, in order.

    The state of a callback can be saved if it has `get_state()`, which returns
    a nest of dict, list, tuple, NumPy arrays and plain values, and
    `set_state(state)`, which may be called more than once. Keras's
    `EarlyStopping`, `ReduceLROnPlateau` and `ModelCheckpoint` are supported;
    any other callback is treated as stateless.

    Args:
        callbacks: list of `keras.callbacks.Callback`.

    Raises:
        ValueError: `callbacks` is not such a list.
    """

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        super().__init__()
        if not isinstance(callbacks, (list, tuple)) or not all(
            isinstance(callback, keras.callbacks.Callback)
            for callback in callbacks
        ):
            raise ValueError(
                "`callbacks` must be a list of `keras.callbacks.Callback`. "
                f"Received: callbacks={checks.shown(callbacks)}"
            )
        self.callbacks: list[keras.callbacks.Callback] = list(callbacks)

    def get_states(self) -> list[Any]:
        """Returns the class and the state, or None, of each callback."""
        return [
            {"class": type(callback).__name__, "state": _get_state(callback)}
            for callback in self.callbacks
        ]

    def set_states(self, states: Sequence[Any]) -> None:
        """Restores the states that `get_states` returned.

        Args:
            states: list, as returned by `get_states`.

        Raises:
            ValueError: the callbacks have other classes.
        """
        before = [state["class"] for state in states]
        now = [type(callback).__name__ for callback in self.callbacks]
        if before != now:
            raise ValueError(
                f"`callbacks` must be those of the backup, {before}. "
                f"Received: {now}"
            )
        for callback, state in zip(self.callbacks, states, strict=True):
            _set_state(callback, state["state"])

    def set_params(self, params: dict[str, Any] | None) -> None:
        """Forwards the parameters of `fit`."""
        super().set_params(params)
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: keras.Model) -> None:
        """Forwards the model."""
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)


def _forwarded(name):
    def hook(self, *arguments, **keywords):
        for callback in self.callbacks:
            getattr(callback, name)(*arguments, **keywords)

    hook.__name__ = hook.__qualname__ = name
    hook.__doc__ = f"Forwards `{name}`."
    return hook


for _hook in (
    "on_train_begin",
    "on_train_end",
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_test_begin",
    "on_test_end",
    "on_test_batch_begin",
    "on_test_batch_end",
):
    setattr(CallbackGroup, _hook, _forwarded(_hook))


def _get_state(callback):
    if hasattr(callback, "get_state"):
        return callback.get_state()
    names = _state_attributes(callback)
    return {name: getattr(callback, name) for name in names} if names else None


def _set_state(callback, state):
    if hasattr(callback, "set_state"):
        callback.set_state(state)
        return
    for name in _state_attributes(callback):
        setattr(callback, name, state[name])


def _state_attributes(callback):
    for kind, names in _STATE_ATTRIBUTES.items():
        if isinstance(callback, kind):
            return names
    return ()
