"""Callbacks that are spoken to through one, and what they remember."""

import keras

# What callbacks of Keras remember from one step to the next.
_REMEMBERED = {
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
    """Hands everything that `fit` says on to other callbacks, in order.

    A callback has a state that can be kept where it offers `get_state()`, which
    returns a nest of dict, list, tuple, NumPy arrays and plain values, and
    `set_state(state)`, which may be called more than once. `EarlyStopping`,
    `ReduceLROnPlateau` and `ModelCheckpoint` of Keras are known; any other
    callback is taken to remember nothing.

    Args:
        callbacks: list of `keras.callbacks.Callback`.

    Raises:
        ValueError: `callbacks` is not such a list.
    """

    def __init__(self, callbacks):
        super().__init__()
        callbacks = list(callbacks)
        for callback in callbacks:
            if not isinstance(callback, keras.callbacks.Callback):
                raise ValueError(
                    "`callbacks` must be a list of `keras.callbacks.Callback`. "
                    f"Received: callbacks={callbacks!r}"
                )
        self.callbacks = callbacks

    def get_states(self):
        """Returns, for each callback, its class and its state or None."""
        return [
            {"class": type(callback).__name__, "state": _get_state(callback)}
            for callback in self.callbacks
        ]

    def set_states(self, states):
        """Sets the callbacks to what `get_states` returned.

        Args:
            states: list, as returned.

        Raises:
            ValueError: the callbacks are of other classes.
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

    def set_params(self, params):
        """Hands the parameters of `fit` on."""
        super().set_params(params)
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model):
        """Hands the model on."""
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)


def _handed_on(name):
    def hook(self, *arguments, **keywords):
        for callback in self.callbacks:
            getattr(callback, name)(*arguments, **keywords)

    hook.__name__ = hook.__qualname__ = name
    hook.__doc__ = f"Hands `{name}` on."
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
    setattr(CallbackGroup, _hook, _handed_on(_hook))


def _get_state(callback):
    if hasattr(callback, "get_state"):
        return callback.get_state()
    names = _remembered(callback)
    return {name: getattr(callback, name) for name in names} if names else None


def _set_state(callback, state):
    if hasattr(callback, "set_state"):
        callback.set_state(state)
        return
    for name in _remembered(callback):
        setattr(callback, name, state[name])


def _remembered(callback):
    for kind, names in _REMEMBERED.items():
        if isinstance(callback, kind):
            return names
    return ()
