"""Averaging of the last checkpoints."""

import collections
import contextlib
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.atomic_files import (
    clear_partial,
    ensure_room,
    whole_file,
    writable_folder,
)
from keras_attn.training.backup_checks import check_save_freq
from keras_attn.training.weight_average import (
    averaged_weights,
    copies,
    set_to_mean,
    set_to_mean_of_files,
)
from keras_attn.typing import PathLike

# What `get_state` returns.
_STATE = {"steps", "kept", "seen", "epoch_start", "best", "best_loss"}


class CheckpointAverage(keras.callbacks.Callback):
    """Sets the weights to the average of the last checkpoints after training.

        w = (w_1 + ... + w_n) / n, summed in float64

    Vaswani et al. 2017, sec. 6.1, https://arxiv.org/abs/1706.03762: the last 5
    checkpoints for the base model, the last 20 for the big one. At the end of
    `fit` the model has the averaged weights; `restore` returns to the trained
    ones. Floating-point weights are averaged, including the statistics of
    normalization layers. Integers, random seeds and the optimizer are not
    changed.

    With `validate=True`, `fit` evaluates its validation data with the average
    of the checkpoints so far, so that `val_loss` is that of the result. The
    model then gets the average with the lowest `val_loss`, from the start of
    the training on. Add Keras's `EarlyStopping(patience=...)` to stop when it
    no longer improves; `restore_best_weights` is not needed.

    With a `directory`, the checkpoints are `step-<number>.weights.h5` files
    there, written atomically. Only those of the running `fit` are averaged and,
    beyond the last `num_checkpoints`, removed; for files of several runs, use
    `average_weights`. If one cannot be written, `fit` raises OSError and the
    existing ones are kept. Without a directory, the copies are held in host
    memory: `num_checkpoints` times the weights. `TrainingBackup` saves them in
    its own checkpoints.

    Args:
        num_checkpoints: int >= 1. n, the number of checkpoints. Default 5.
        save_freq: "epoch", or int >= 1: optimizer steps between checkpoints.
            Default "epoch". If `steps_per_execution` runs past a multiple, the
            checkpoint is taken at the end of that execution.
        directory: str or path. Folder of the checkpoints; created if missing.
            Default None: in memory.
        validate: bool. Whether validation uses the average, and the best one is
            kept. Only for checkpoints in memory. Default False.

    Raises:
        ValueError: `num_checkpoints` is not a positive integer; `save_freq` is
            neither "epoch" nor a positive integer; `validate` with a
            `directory`; by `fit`: `directory` is not writable.

    Examples:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> average = CheckpointAverage(num_checkpoints=2)
        >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
        >>> history = model.fit(
        ...     x, y, batch_size=4, epochs=3, callbacks=[average], verbose=0
        ... )
        >>> average.steps  # the averaged ones
        [4, 6]
        >>> average.restore()  # the weights after step 6
    """

    def __init__(
        self,
        num_checkpoints: int = 5,
        save_freq: int | str = "epoch",
        directory: PathLike | None = None,
        validate: bool = False,
    ) -> None:
        super().__init__()
        self.num_checkpoints: int = checks.positive_int(
            "num_checkpoints", num_checkpoints
        )
        check_save_freq(save_freq)
        self.save_freq = save_freq
        if directory is not None:
            directory = checks.path("directory", directory)
        self.directory = directory
        self.validate: bool = checks.boolean("validate", validate)
        if validate and directory is not None:
            raise ValueError(
                "`validate` needs checkpoints in memory. Received: "
                f"validate=True, directory={checks.shown(directory)}"
            )
        # Keras need not wait for each batch: with "epoch" the batch hook does
        # nothing. (Not documented as of Keras 3.15.1.)
        self.async_safe: bool = save_freq == "epoch"
        self._kept = collections.deque()
        self._trained = None
        self._seen = self._epoch_start = 0
        self._best, self._best_loss = None, math.inf
        self._validated = None

    @property
    def best_loss(self) -> float:
        """Float: the lowest `val_loss` of an average, with `validate`."""
        return self._best_loss

    @property
    def steps(self) -> list[int]:
        """List of int: the optimizer steps of the current checkpoints."""
        return [step for step, _ in self._kept]

    @property
    def paths(self) -> list[str]:
        """List of str: the files of the checkpoints; empty if in memory."""
        if self.directory is None:
            return []
        return [checkpoint for _, checkpoint in self._kept]

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Clears the checkpoints of an earlier `fit` (no file is removed)."""
        self._kept.clear()
        self._trained = None
        self._best, self._best_loss = None, math.inf
        self._seen = self._now()
        if self.directory is not None:
            writable_folder("directory", self.directory)
            clear_partial(self.directory, "step-*.weights.h5")

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Records the first step of the epoch."""
        self._epoch_start = self._now()

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Takes a checkpoint after each multiple of `save_freq` steps."""
        if self.save_freq == "epoch":
            return
        passed = self._seen // self.save_freq
        # The batch number is a free upper bound on the steps (too high if an
        # execution of several steps is cut short). The optimizer's count is
        # exact, but reading it fetches all weights on JAX (as of Keras 3.15.1).
        if (self._epoch_start + batch + 1) // self.save_freq == passed:
            return
        self._seen = self._now()
        if self._seen // self.save_freq > passed:
            self._take()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Takes a checkpoint if `save_freq` is "epoch"; compares averages."""
        if self.save_freq == "epoch":
            self._seen = self._now()
            self._take()
        loss = (logs or {}).get("val_loss")
        if self._validated is not None and loss is not None:
            if float(loss) < self._best_loss:
                self._best, self._best_loss = self._validated, float(loss)
        self._validated = None

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Sets the model to the average, with `validate`."""
        if not self.validate:
            return
        if self.save_freq == "epoch" or not self._kept:
            self._seen = self._now()
            self._take()
        model = self.model
        self._trained = copies(averaged_weights(model))
        self._set_to_average(model)
        self._validated = copies(averaged_weights(model))

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Sets the model back to the trained weights, with `validate`."""
        if self.validate:
            self.restore()

    def get_state(self) -> dict[str, Any]:
        """Returns the current checkpoints and the position in the training.

        Returns:
            Dict, with the weights of checkpoints in memory, or the names of
            those in a directory.
        """
        return {
            "steps": self.steps,
            "kept": [
                os.path.basename(kept) if self.directory else kept
                for _, kept in self._kept
            ],
            "seen": self._seen,
            "epoch_start": self._epoch_start,
            "best": self._best,
            "best_loss": self._best_loss,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned.

        Args:
            state: dict, as returned by `get_state`.
        """
        if not isinstance(state, dict) or not _STATE <= state.keys():
            raise ValueError(
                "`state` must be a dict that `get_state` returned. "
                f"Received: state={checks.shown(state)}"
            )
        kept = state["kept"]
        if self.directory is not None:
            kept = [os.path.join(self.directory, name) for name in kept]
        self._kept = collections.deque(zip(state["steps"], kept, strict=True))
        self._seen = state["seen"]
        self._epoch_start = state["epoch_start"]
        self._best = state["best"]
        self._best_loss = state["best_loss"]

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Sets the model to the average."""
        self._forget_missing()
        if self._kept:
            self.apply()
        else:
            warnings.warn(
                "CheckpointAverage: training ended before the first checkpoint "
                f"(save_freq={self.save_freq!r}); the weights stay as trained.",
                stacklevel=2,
            )

    def apply(self, model: keras.Model | None = None) -> None:
        """Sets `model` to the average of the checkpoints.

        With `validate`, to the best average of the training.

        Args:
            model: the trained model, or one with the same weights. Default: the
                trained model.

        Raises:
            ValueError: no checkpoint has been taken.
        """
        if not self._kept:
            raise ValueError(
                "`apply` needs a checkpoint, and none has been taken."
            )
        model = self.model if model is None else model
        if self._trained is None:
            self._trained = copies(averaged_weights(model))
        if self._best is not None:
            set_to_mean(averaged_weights(model), [self._best])
        elif self.directory is not None:
            set_to_mean_of_files(model, self.paths)
        else:
            self._set_to_average(model)

    def restore(self, model: keras.Model | None = None) -> None:
        """Sets `model` back to the weights it had before `apply`.

        Args:
            model: as given to `apply`. Default: the trained model.

        Raises:
            ValueError: no average has been applied.
        """
        if self._trained is None:
            raise ValueError(
                "`restore` needs an applied average, and none has been applied."
            )
        variables = averaged_weights(self.model if model is None else model)
        for variable, value in zip(variables, self._trained, strict=True):
            variable.assign(value)
        self._trained = None

    @staticmethod
    def average_weights(model: keras.Model, paths: Sequence[PathLike]) -> None:
        """Sets `model` to the average of weight files.

        Args:
            model: a built `keras.Model`. Its integers, seeds and optimizer are
                not changed.
            paths: list of str or path. `.weights.h5` files of that model.

        Raises:
            ValueError: `paths` is empty, or a file does not fit the model,
                whose weights are then unchanged.

        Examples:
            >>> import os, tempfile
            >>> import numpy as np
            >>> model = keras.Sequential(
            ...     [keras.Input((1,)), keras.layers.Dense(1)]
            ... )
            >>> directory = tempfile.mkdtemp()
            >>> paths = [
            ...     os.path.join(directory, f"{i}.weights.h5") for i in (1, 3)
            ... ]
            >>> for path, value in zip(paths, (1.0, 3.0)):
            ...     model.set_weights([np.array([[value]]), np.array([0.0])])
            ...     model.save_weights(path)
            >>> CheckpointAverage.average_weights(model, paths)
            >>> float(model.get_weights()[0][0, 0])
            2.0
        """
        checks.instance("model", model, keras.Model, "a Keras model")
        checks.instance("paths", paths, (list, tuple), "a list of paths")
        paths = [checks.path("paths", path) for path in paths]
        if not paths:
            raise ValueError(
                "`paths` must name at least one weights file. "
                "Received: paths=[]"
            )
        set_to_mean_of_files(model, paths)

    def _set_to_average(self, model):
        arrays = [kept for _, kept in self._kept]
        set_to_mean(averaged_weights(model), arrays)

    def _now(self):
        """Returns the number of optimizer updates so far."""
        # On JAX, `self.model` first copies the state of a running `fit` back
        # into the variables.
        done = keras.ops.convert_to_tensor(self.model.optimizer.iterations)
        return int(keras.ops.convert_to_numpy(done))

    def _take(self):
        if self._kept and self._kept[-1][0] == self._seen:
            return  # All steps since were skipped: the weights are the same.
        if self.directory is None:
            checkpoint = copies(averaged_weights(self.model))
        else:
            checkpoint = self._write()
        self._kept.append((self._seen, checkpoint))
        while len(self._kept) > self.num_checkpoints:
            _, oldest = self._kept.popleft()
            if self.directory is not None:
                # A run resumed from a backup may have removed it before.
                with contextlib.suppress(FileNotFoundError):
                    os.remove(oldest)

    def _write(self):
        name = f"step-{self._seen:08d}.weights.h5"
        path = os.path.join(self.directory, name)
        model = self.model
        variables = [*model.variables, *model.optimizer.variables]
        values = sum(
            math.prod(v.shape) * np.dtype(v.dtype).itemsize for v in variables
        )
        # HDF5 adds some kilobytes to each variable.
        ensure_room(path, values + (len(variables) + 16) * 4096)
        with whole_file(path) as partial:
            model.save_weights(partial)
        return path

    def _forget_missing(self):
        """Drops missing files with a warning."""
        missing = [path for path in self.paths if not os.path.exists(path)]
        if missing:
            warnings.warn(
                f"CheckpointAverage: {', '.join(missing)} went missing; the "
                "average is over the other checkpoints.",
                stacklevel=3,
            )
            self._kept = collections.deque(
                kept for kept in self._kept if kept[1] not in missing
            )
