"""TrainingBackup: a `fit` that survives being killed."""

import os
import warnings

import keras

from keras_attn import backend, checks
from keras_attn.training.backup_checks import (
    check_place,
    check_settings,
    fewer_batches,
    plain_settings,
)
from keras_attn.training.backup_folder import BackupFolder
from keras_attn.training.callback_group import CallbackGroup
from keras_attn.training.model_state import (
    build_metrics,
    metrics_are_built,
    model_state,
    set_model_state,
)


class TrainingBackup(CallbackGroup):
    """Lets a killed `fit` go on where it stopped, with the same numbers.

    Every so often it writes a checkpoint: weights, optimizer, the random
    numbers of dropout, the place within the epoch, its running metrics, the
    history, and what the other callbacks remember. The same program, started
    again, goes on from the newest one, and ends with the weights of a run that
    nobody disturbed. Three lines of it are about that:

        backup = TrainingBackup("backup", [log, average], save_freq=200,
        data=data) model.fit(data, epochs=10, callbacks=[backup])
        model.save("model.keras"); backup.remove()

    The checkpoints stay when `fit` is over, so that what comes after it may be
    killed as well: `fit` then has nothing left to train, and ends at once with
    what it had ended with. `remove` says that the run is finished; the next
    one starts anew. A larger `epochs` goes on from the last epoch, as if it
    had been asked for in the first place. Where a callback has stopped the
    training, it stays stopped.

    A checkpoint is one file, whole at any moment, on the disk before the one
    before the last is removed. One that cannot be read is passed over with a
    warning. One that cannot be written (a full disk) is warned of, once;
    training goes on, and the earlier ones stay.

    Data: batches that were trained on are read again and passed over, so each
    epoch needs the same batches in the same order in every run. Arrays have
    that on JAX and PyTorch, and with `shuffle=False` on TensorFlow. Data whose
    order depends on the epoch, as that of `keras_attn.text.token_batches`
    does, are handed over as `data`; they offer `set_epoch(epoch)`, which is
    called as each epoch begins. Where an order cannot come back, take
    `save_freq="epoch"`.

    Other callbacks are handed over and not given to `fit`: outside they would
    start from nothing, and be told of batches passed over. A callback of your
    own that remembers something offers

        get_state(): a nest of dict, list, tuple, NumPy arrays, plain values
        set_state(state): goes on from it; may be called more than once, each
            time after `on_train_begin` or `on_epoch_begin`

    `CheckpointAverage` does, and of Keras's `EarlyStopping`,
    `ReduceLROnPlateau` and `ModelCheckpoint` are known.

    Args:
        directory: str or path. Folder of the checkpoints; made if missing. No
            other run may use it at the same time.
        callbacks: list of `keras.callbacks.Callback`, the other callbacks of
            this `fit`. Default: none.
        save_freq: "epoch", or int >= 1: batches from one checkpoint to the
            next. Default "epoch".
        data: what `fit` reads, where it offers `set_epoch(epoch)`. Default
            None: the order is the same in all epochs, or comes from the global
            random numbers.
        settings: dict of plain values that make the run what it is. A backup
            with others is refused. Default: none.
        resume: bool. Whether to go on from a checkpoint; if False, those that
            are there are removed. Default True.

    Raises:
        ValueError: arguments out of range; `directory` cannot be written to,
            holds a backup with other `settings`, or none that can be read.
            By `fit`: the backup is of another model, of other callbacks, or of
            data with more batches; the model is not built.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> directory = tempfile.mkdtemp()
        >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
        >>> def fit(epochs):
        ...     keras.utils.set_random_seed(0)
        ...     model = keras.Sequential(
        ...         [keras.Input((3,)), keras.layers.Dense(1)]
        ...     )
        ...     model.compile("sgd", "mse")
        ...     backup = TrainingBackup(directory)
        ...     history = model.fit(
        ...         x, y, epochs=epochs, callbacks=[backup], verbose=0
        ...     )
        ...     return backup, history
        >>> _ = fit(epochs=2)
        >>> backup, history = fit(epochs=3)  # trains one epoch more
        >>> history.epoch
        [0, 1, 2]
        >>> backup.remove()
    """

    def __init__(
        self,
        directory,
        callbacks=(),
        save_freq="epoch",
        data=None,
        settings=None,
        resume=True,
    ):
        super().__init__(callbacks)
        if save_freq != "epoch":
            checks.positive_int("save_freq", save_freq)
        if data is not None and not hasattr(data, "set_epoch"):
            raise ValueError(
                "`data` must offer `set_epoch(epoch)`. "
                f"Received: data of type {type(data).__name__}"
            )
        self.save_freq = save_freq
        self.data = data
        self.settings = plain_settings(settings)
        # Lets Keras call back beside the training loop, as `Callback` itself
        # would, where nothing is done there.
        self.async_safe = save_freq == "epoch" and all(
            map(_idle_in_steps, self.callbacks)
        )
        self._folder = BackupFolder(directory)
        if not resume:
            self.remove()
            self._folder.open()
        self._found = self._newest()
        self._skipping = False

    @property
    def directory(self):
        """Str: the folder of the checkpoints."""
        return os.fspath(self._folder.path)

    def remove(self):
        """Removes the checkpoints: the run is finished, or given up."""
        self._folder.remove()
        self._found = None, None

    def on_train_begin(self, logs=None):
        """Goes on from the newest checkpoint, where there is one."""
        # Kept, because on JAX to ask for `self.model` brings all weights back
        # from the running loop.
        self._fitted = model = self.model
        if not model.built:
            raise ValueError(
                "`model` must be built before `fit`. "
                f"Received: {model.name}, which is not"
            )
        backend.stop_skipping(model)  # An earlier `fit` may have been cut off.
        self._skipping = False
        self._folder.open()
        path, state = self._found or self._newest()
        self._found = None
        self._failed = False
        self._history = {"epoch": [], "logs": {}}
        self._passed = self._unsaved = 0
        self._resumed = state
        # Keras's own BackupAndRestore sets the first epoch so; to leave it
        # there would shift the next `fit`.
        model._initial_epoch = None
        if state is None:
            super().on_train_begin(logs)
            return
        check_place(state, model, self.params["steps"])
        set_model_state(model, state["model"])
        super().on_train_begin(logs)
        self.set_states(state["callbacks"])
        backend.set_random_state(state["random"])
        self._history = state["history"]
        over = state["stopped"] or state["epoch"] >= self.params["epochs"]
        model._initial_epoch = self.params["epochs"] if over else state["epoch"]
        if self.params.get("verbose"):
            print(_resumption(path, state, over))

    def on_epoch_begin(self, epoch, logs=None):
        """Sets data, metrics and callbacks to the middle of the epoch."""
        state, self._resumed = self._resumed, None
        if self.data is not None:
            self.data.set_epoch(epoch)
        super().on_epoch_begin(epoch, logs)
        self._epoch = epoch
        self._passed = 0
        self._fitted._initial_epoch = None
        if state is not None:
            self._hand_back_history()
        if state is None or not state["batch"]:
            self._order = backend.random_state()
            return
        # The epoch began once before: what came of it now is undone.
        set_model_state(self._fitted, state["model"])
        self.set_states(state["callbacks"])
        # The order of the data first, then what is drawn in the steps.
        self._order = state["order"]
        backend.set_random_state(self._order)
        self._passed = state["batch"]
        self._restored = self._restore_metrics(state["model"])
        self._skipping = True
        backend.skip_steps(
            self._fitted,
            self._passed,
            state["logs"],
            lambda batch: self._after_skipping(state, batch),
        )

    def on_train_batch_begin(self, batch, logs=None):
        """Hands on the batches that are trained on."""
        if batch >= self._passed:
            super().on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        """Writes a checkpoint when it is time."""
        if batch < self._passed:
            return
        super().on_train_batch_end(batch, logs)
        if self.save_freq == "epoch":
            return
        self._unsaved += batch + 1 - self._passed
        self._passed = batch + 1
        # Who stops the training now will stop it again.
        if self._unsaved >= self.save_freq and not self._fitted.stop_training:
            self._save(self._epoch, batch + 1, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Writes a checkpoint when it is time, and behind the last epoch."""
        if self._skipping:
            backend.stop_skipping(self._fitted)
            place = {"epoch": epoch, "batch": self._passed}
            raise ValueError(fewer_batches(place, "fewer"))
        super().on_epoch_end(epoch, logs)
        self._history["epoch"].append(epoch)
        for name, value in _plain(logs or {}).items():
            self._history["logs"].setdefault(name, []).append(value)
        stopped = self._fitted.stop_training
        if (
            self.save_freq == "epoch"
            or stopped
            or epoch + 1 >= self.params["epochs"]
        ):
            self._save(epoch + 1, 0, {}, stopped)

    def on_train_end(self, logs=None):
        """Leaves the model as it was found, but for what was trained."""
        if self._resumed is not None:  # There was no epoch left.
            self._hand_back_history()
        self._fitted._initial_epoch = None
        super().on_train_end(logs)

    def _newest(self):
        path, state = self._folder.newest()
        if state is not None:
            check_settings(path, state["settings"], self.settings)
        return path, state

    def _save(self, epoch, batch, logs, stopped=False):
        # On JAX, this first brings the state of the running loop back.
        model = self.model
        state = {
            "epoch": epoch,
            "batch": batch,
            "stopped": bool(stopped),
            "steps_per_execution": model.steps_per_execution,
            "logs": _plain(logs),
            "settings": self.settings,
            "history": self._history,
            "random": backend.random_state(),
            "order": self._order if batch else None,
            "callbacks": self.get_states(),
            "model": model_state(model),
        }
        self._unsaved = 0
        try:
            self._folder.write(epoch, batch, state)
            self._failed = False
        except OSError as error:
            if not self._failed:
                last = self._folder.last()
                warnings.warn(
                    f"TrainingBackup: no checkpoint after {_place(state)}: "
                    f"{error.strerror or error}. Training goes on; the last "
                    f"checkpoint is {last or 'still to come'}.",
                    stacklevel=2,
                )
            self._failed = True

    def _restore_metrics(self, state):
        """Sets the running metrics; says whether they were there to be set."""
        built = metrics_are_built(self._fitted, state)
        if built:
            set_model_state(self._fitted, state, ["metrics"])
        return built

    def _after_skipping(self, state, batch):
        self._skipping = False
        if not self._restored:
            build_metrics(self._fitted, batch)
            if not self._restore_metrics(state["model"]):
                warnings.warn(
                    "TrainingBackup: the metrics of this epoch are those of "
                    "the rest of it; the model makes others than it had.",
                    stacklevel=2,
                )
        backend.set_random_state(state["random"])

    def _hand_back_history(self):
        """Lets `fit` return the epochs of all its pieces."""
        history = getattr(self._fitted, "history", None)
        if history is not None:
            history.epoch = list(self._history["epoch"])
            history.history = {
                name: list(values)
                for name, values in self._history["logs"].items()
            }


def _idle_in_steps(callback):
    """Whether a callback does nothing at the end of a batch."""
    names = ("on_batch_end", "on_train_batch_end", "on_test_batch_end")
    return getattr(callback, "async_safe", False) or all(
        getattr(type(callback), name) is getattr(keras.callbacks.Callback, name)
        for name in names
    )


def _plain(logs):
    """Returns logs as floats, and as arrays where a metric gives several."""
    arrays = {k: keras.ops.convert_to_numpy(v) for k, v in logs.items()}
    return {k: v if v.ndim else v.item() for k, v in arrays.items()}


def _place(state):
    return f"{state['epoch']} epochs and {state['batch']} batches"


def _resumption(path, state, over):
    """Returns what is said where a checkpoint was found."""
    if over:
        return (
            f"TrainingBackup: training is over, as it was after "
            f"{_place(state)} ({path})."
        )
    return f"TrainingBackup: goes on after {_place(state)} ({path})."
