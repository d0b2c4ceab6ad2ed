"""Backups that resume an interrupted `fit`."""

import contextlib
import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keras_attn import backend, checks
from keras_attn.training.backup_checks import (
    check_place,
    check_save_freq,
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
from keras_attn.training.process_agreement import (
    check_processes_agree,
    compare_processes,
)
from keras_attn.typing import PathLike


class TrainingBackup(keras.callbacks.Callback):
    """Resumes an interrupted `fit` exactly where it stopped.

    It regularly saves a checkpoint: weights, optimizer, dropout random state,
    position within the epoch, running metrics, history, and the states of the
    other callbacks. The same program, started again, resumes from the newest
    checkpoint and ends with the same weights as an uninterrupted run:

        backup = TrainingBackup(
            "backup", [log, average], save_freq=200, data=data)
        model.fit(data, epochs=10, callbacks=[backup])
        model.save("model.keras")
        backup.remove()

    The checkpoints are kept after `fit`, so that the program can also be
    interrupted later: started again, `fit` then returns at once with its final
    state. Call `remove` when the run is finished; the next run starts from
    scratch. A run with more `epochs` continues after the last one, with the
    same result as if that number had been passed at first. If a callback has
    stopped the training, it stays stopped.

    A checkpoint is one file, written atomically; the last two are kept. An
    unreadable checkpoint is skipped with a warning. If one cannot be written (a
    full disk), there is one warning, training continues, and the earlier
    checkpoints are kept.

    Data: completed batches are read again and skipped, so an epoch must have
    the same batches in the same order in every run. This holds for arrays on
    JAX and PyTorch, and on TensorFlow with `shuffle=False`. Data whose order
    depends on the epoch, such as `keras_attn.text.token_batches`, must be
    passed as `data` and have a method `set_epoch(epoch)`, which is called
    before each epoch. If the order cannot be reproduced, use
    `save_freq="epoch"`.

    Pass other callbacks to `TrainingBackup`, not to `fit`: otherwise they would
    not be restored, and would be called for skipped batches. A custom callback
    with a state implements

        get_state(): returns a nest of dict, list, tuple, NumPy arrays and plain
            values
        set_state(state): restores it; may be called more than once, each time
            after `on_train_begin` or `on_epoch_begin`

    as `CheckpointAverage` does. Keras's `EarlyStopping`, `ReduceLROnPlateau`
    and `ModelCheckpoint` are supported.

    With several processes (`jax.distributed`, `torch.distributed`), all of them
    use this callback, with the same `directory`, in a folder that they share.
    The first process writes a checkpoint while the others wait, and all resume
    from it, with the random state of the first. If a process dies, also while
    it writes, the last complete checkpoint is kept.

    Within `interruptible()`, Ctrl-C writes a checkpoint before it stops `fit`.

    Args:
        directory: str or path. Folder of the checkpoints; created if missing.
            No other run may use it at the same time, but all processes of this
            run do.
        callbacks: list of `keras.callbacks.Callback`, the other callbacks of
            this `fit`. Default: none.
        save_freq: "epoch", or int >= 1: batches between checkpoints. Default
            "epoch".
        data: the data of `fit`, if it has a method `set_epoch(epoch)`. Default
            None: the order is the same in all epochs, or comes from the global
            random state.
        settings: dict of plain values that identify the run. A backup with
            other settings raises an error. Default: none.
        resume: bool. Whether to resume from a checkpoint; if False, existing
            ones are removed. Default True.

    Raises:
        ValueError: arguments out of range; `directory` is not writable, or
            contains a backup with other `settings` or only unreadable ones. By
            `fit`: the backup is of another model, of other callbacks, or of
            data with more batches; the model is not built; two processes have
            different settings, models or checkpoints.

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
        >>> backup, history = fit(epochs=3)  # trains one more epoch
        >>> history.epoch
        [0, 1, 2]
        >>> backup.remove()
    """

    def __init__(
        self,
        directory: PathLike,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        save_freq: int | str = "epoch",
        data: Any = None,
        settings: dict[str, Any] | None = None,
        resume: bool = True,
    ) -> None:
        super().__init__()
        checks.path("directory", directory)
        checks.boolean("resume", resume)
        self._group = CallbackGroup(callbacks)
        check_save_freq(save_freq)
        if data is not None and not hasattr(data, "set_epoch"):
            raise ValueError(
                "`data` must have a method `set_epoch(epoch)`. "
                f"Received: data of type {type(data).__name__}"
            )
        self.save_freq = save_freq
        self.data = data
        self.settings: dict[str, Any] = plain_settings(settings)
        # Keras need not wait for each batch if no batch hook does anything.
        # (Not documented as of Keras 3.15.1.)
        self.async_safe: bool = save_freq == "epoch" and all(
            map(_idle_in_steps, self._group.callbacks)
        )
        is_first = backend.process_index() == 0
        self._folder = BackupFolder(directory, writes=is_first)
        if not resume:
            self.remove()
            self._folder.open()
        # The first process may not have removed them yet.
        self._found = self._newest() if resume else (None, None)
        self._skipping = self._interrupted = False

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Returns a context manager in which Ctrl-C saves a checkpoint.

        The running batch, or validation, ends; a checkpoint is written, and
        `fit` raises KeyboardInterrupt. A second Ctrl-C raises it immediately.
        The context must be entered in the main thread. With several processes,
        Ctrl-C raises KeyboardInterrupt without a checkpoint: they need not be
        at the same batch.

        Examples:
            >>> import tempfile
            >>> backup = TrainingBackup(tempfile.mkdtemp())
            >>> model = keras.Sequential(
            ...     [keras.Input((3,)), keras.layers.Dense(1)]
            ... )
            >>> model.compile("sgd", "mse")
            >>> x, y = keras.ops.ones((8, 3)), keras.ops.ones((8, 1))
            >>> with backup.interruptible():
            ...     history = model.fit(x, y, callbacks=[backup], verbose=0)
        """

        def interrupt(number, frame):
            if self._interrupted or backend.process_count() > 1:
                raise KeyboardInterrupt
            self._interrupted = True

        self._interrupted = False
        # Keras calls the hooks of safe callbacks in another thread, where an
        # exception would not end `fit` (as of Keras 3.15.1).
        async_safe, self.async_safe = self.async_safe, False
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self.async_safe, self._interrupted = async_safe, False

    @property
    def directory(self) -> str:
        """Str: the folder of the checkpoints."""
        return os.fspath(self._folder.path)

    def remove(self) -> None:
        """Removes the checkpoints, at the end of a run or to abandon it."""
        self._folder.remove()
        self._found = None, None

    @property
    def callbacks(self) -> list[keras.callbacks.Callback]:
        """List of `keras.callbacks.Callback`: the other callbacks."""
        return self._group.callbacks

    def set_params(self, params: dict[str, Any] | None) -> None:
        """Forwards the parameters of `fit`."""
        super().set_params(params)
        self._group.set_params(params)

    def set_model(self, model: keras.Model) -> None:
        """Forwards the model."""
        super().set_model(model)
        self._group.set_model(model)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Resumes from the newest checkpoint, if there is one."""
        # On JAX, each access to `self.model` copies all weights back from the
        # running loop (as of Keras 3.15.1).
        self._fitted = model = self.model
        if not model.built:
            raise ValueError(
                "`model` must be built before `fit`. "
                f"Received: {model.name}, which is not"
            )
        backend.stop_skipping(model)  # An earlier `fit` may have been aborted.
        self._skipping = False
        self._folder.open()
        path, state = self._found or self._newest()
        self._found = None
        self._compare_processes(state)
        self._failed = False
        self._history = {"epoch": [], "logs": {}}
        self._passed = self._unsaved = 0
        self._resumed = state
        # Private: Keras's BackupAndRestore sets the first epoch this way,
        # as of Keras 3.15.1. A leftover value would shift the next `fit`.
        model._initial_epoch = None
        if state is None:
            self._group.on_train_begin(logs)
            return
        check_place(state, model, self.params["steps"])
        set_model_state(model, state["model"])
        self._group.on_train_begin(logs)
        self._group.set_states(state["callbacks"])
        backend.set_random_state(state["random"])
        self._history = state["history"]
        over = state["stopped"] or state["epoch"] >= self.params["epochs"]
        model._initial_epoch = self.params["epochs"] if over else state["epoch"]
        if self.params.get("verbose"):
            print(_resumption(path, state, over))

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Restores data, metrics and callbacks within the epoch."""
        state, self._resumed = self._resumed, None
        if self.data is not None:
            self.data.set_epoch(epoch)
        self._group.on_epoch_begin(epoch, logs)
        self._epoch = epoch
        self._passed = 0
        self._fitted._initial_epoch = None
        if state is not None:
            self._restore_history()
        if state is None or not state["batch"]:
            self._order = backend.random_state()
            return
        # Undo the effects of beginning this epoch a second time.
        set_model_state(self._fitted, state["model"])
        self._group.set_states(state["callbacks"])
        # First the order of the data, then the random state of the steps.
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

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Forwards batches that are not skipped."""
        if batch >= self._passed:
            self._group.on_train_batch_begin(batch, logs)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes a checkpoint every `save_freq` batches, and on Ctrl-C."""
        if batch < self._passed:
            if self._interrupted:
                raise KeyboardInterrupt  # The checkpoint exists already.
            return
        self._group.on_train_batch_end(batch, logs)
        if self._interrupted and not self._fitted.stop_training:
            self._save(self._epoch, batch + 1, logs)
            raise KeyboardInterrupt
        if self.save_freq == "epoch":
            return
        self._unsaved += batch + 1 - self._passed
        self._passed = batch + 1
        # A callback that stops the training now will stop it again.
        if self._unsaved >= self.save_freq and not self._fitted.stop_training:
            self._save(self._epoch, batch + 1, logs)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes a checkpoint if due, and always after the last epoch."""
        if self._skipping:
            backend.stop_skipping(self._fitted)
            position = {"epoch": epoch, "batch": self._passed}
            raise ValueError(fewer_batches(position, "fewer"))
        self._group.on_epoch_end(epoch, logs)
        self._history["epoch"].append(epoch)
        for name, value in _plain(logs or {}).items():
            self._history["logs"].setdefault(name, []).append(value)
        stopped = self._fitted.stop_training
        if (
            self.save_freq == "epoch"
            or stopped
            or self._interrupted
            or epoch + 1 >= self.params["epochs"]
        ):
            self._save(epoch + 1, 0, {}, stopped)
        if self._interrupted:
            raise KeyboardInterrupt

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Resets what was changed in the model besides its training."""
        if self._resumed is not None:  # There was no epoch left.
            self._restore_history()
        self._fitted._initial_epoch = None
        self._group.on_train_end(logs)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Forwards the start of a validation."""
        self._group.on_test_begin(logs)

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Forwards the end of a validation."""
        self._group.on_test_end(logs)

    def on_test_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Forwards a batch of a validation."""
        self._group.on_test_batch_begin(batch, logs)

    def on_test_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Forwards the end of a batch of a validation."""
        self._group.on_test_batch_end(batch, logs)

    def _newest(self):
        path, state = self._folder.newest()
        if state is not None:
            check_settings(path, state["settings"], self.settings)
        return path, state

    def _compare_processes(self, state):
        """Raises in all processes unless they are in the same state."""
        if backend.process_count() == 1:
            return
        place = state and [state["epoch"], state["batch"]]
        facts = {f"settings[{k!r}]": v for k, v in self.settings.items()}
        facts["`save_freq`"] = self.save_freq
        facts["the number of batches of the data of `fit`"] = self.params[
            "steps"
        ]
        facts["[epochs, batches] of the checkpoint in `directory`"] = place
        compare_processes(facts)
        check_processes_agree(self._fitted)

    def _save(self, epoch, batch, logs, stopped=False):
        # On JAX, this first copies the state of the running loop back.
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
            "callbacks": self._group.get_states(),
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
                    f"TrainingBackup: no checkpoint after {_position(state)}: "
                    f"{error.strerror or error}. Training continues; the last "
                    f"checkpoint is {last or 'yet to be written'}.",
                    stacklevel=2,
                )
            self._failed = True
        if backend.process_count() > 1:
            # The others wait until the checkpoint is written.
            backend.gather_texts("")

    def _restore_metrics(self, state):
        """Restores the running metrics; returns False if they are not built."""
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
                    "TrainingBackup: the metrics of this epoch cover only the "
                    "rest of it, because the model has other metrics now.",
                    stacklevel=2,
                )
        backend.set_random_state(state["random"])

    def _restore_history(self):
        """Makes `fit` return the epochs of all interrupted runs."""
        history = getattr(self._fitted, "history", None)
        if history is not None:
            history.epoch = list(self._history["epoch"])
            history.history = {
                name: list(values)
                for name, values in self._history["logs"].items()
            }


def _idle_in_steps(callback):
    """Returns whether a callback does nothing at the end of a batch."""
    names = ("on_batch_end", "on_train_batch_end", "on_test_batch_end")
    return getattr(callback, "async_safe", False) or all(
        getattr(type(callback), name) is getattr(keras.callbacks.Callback, name)
        for name in names
    )


def _plain(logs):
    """Returns logs as floats, or arrays for metrics with several values."""
    arrays = {k: keras.ops.convert_to_numpy(v) for k, v in logs.items()}
    return {k: v if v.ndim else v.item() for k, v in arrays.items()}


def _position(state):
    return f"{state['epoch']} epochs and {state['batch']} batches"


def _resumption(path, state, over):
    """Returns the message that is printed when a checkpoint was found."""
    if over:
        return (
            f"TrainingBackup: training is complete after {_position(state)} "
            f"({path})."
        )
    return f"TrainingBackup: resuming after {_position(state)} ({path})."
