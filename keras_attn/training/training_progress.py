"""Progress of a training: bar, curves, time limit."""

import sys
import time
from typing import Any, TextIO

import keras
import numpy as np

from keras_attn import checks
from keras_attn.typing import Tensor

_BAR = 24  # characters
# Seconds between two lines, on a terminal and in a file.
_TERMINAL, _FILE = 0.5, 30.0


class TrainingProgress(keras.callbacks.Callback):
    """Shows the progress of `fit`, records its curves, and limits its time.

    On a terminal it redraws one line; in a file it adds a line every 30
    seconds:

        epoch 3/10 [=======>         ] 31% loss 2.314, 4,145 tokens/s, 2:36 left

    The remaining time is that of all epochs, or of `minutes` if it is shorter.
    Use it with `fit(verbose=0)`. A `TrainingBackup` saves its state: the curves
    and the clock of a resumed run continue.

    Args:
        minutes: float > 0. Training ends with the first batch after this time.
            Default None: no limit.
        tokens_per_epoch: int >= 1. Tokens that the rate counts, such as
            `target_tokens` of a `text.BatchReport`. Default None: the rate is
            in batches.
        file: text stream. Default None: `sys.stderr`.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
        >>> progress = TrainingProgress(minutes=1)
        >>> history = model.fit(
        ...     x, y, batch_size=4, epochs=2, callbacks=[progress], verbose=0
        ... )
        >>> len(progress.losses)
        4
    """

    def __init__(
        self,
        minutes: float | None = None,
        tokens_per_epoch: int | None = None,
        file: TextIO | None = None,
    ) -> None:
        super().__init__()
        if minutes is not None:
            checks.positive("minutes", minutes)
        if tokens_per_epoch is not None:
            checks.positive_int("tokens_per_epoch", tokens_per_epoch, most=None)
        if file is not None and not hasattr(file, "write"):
            raise ValueError(
                "`file` must be a text stream. "
                f"Received: file of type {type(file).__name__}"
            )
        self.minutes = minutes
        self.tokens_per_epoch = tokens_per_epoch
        self._losses, self._validation, self._seconds = [], [], 0.0
        self._file = file
        self._in_epoch, self._mean = 0, 0.0
        self._drawn = self._width = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock and clears the curves."""
        self._losses, self._validation, self._seconds = [], [], 0.0
        self._in_epoch, self._mean = 0, 0.0
        self._epoch = 0
        self._start = self._drawn = time.monotonic()

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Resets the running mean of the epoch."""
        self._epoch, self._in_epoch, self._mean = epoch, 0, 0.0

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Records the loss, shows the progress, and checks the time."""
        # Keras reports the mean since the start of the epoch, and the last
        # batch of each execution of several steps, beyond the end of the epoch
        # if it is cut short (as of Keras 3.15.1).
        mean, steps = float(logs["loss"]), self.params["steps"]
        count = min(batch + 1, steps) if steps else batch + 1
        new = count - self._in_epoch
        loss = (mean * count - self._mean * self._in_epoch) / new
        self._losses += [loss] * new
        self._in_epoch, self._mean = count, mean
        now = time.monotonic()
        self._seconds = now - self._start
        wait = _TERMINAL if self._is_terminal() else _FILE
        if now - self._drawn >= wait:
            self._drawn = now
            self._draw()
        if self.minutes is not None and self._seconds >= 60 * self.minutes:
            # On JAX, `self.model` copies all weights (as of Keras 3.15.1).
            self.model.stop_training = True

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Records the validation loss."""
        if logs and "val_loss" in logs:
            self._validation.append(
                (len(self._losses), float(logs["val_loss"]))
            )

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Ends the line with a summary."""
        self._write(
            f"{len(self._losses):,} batches in {_clock(self._seconds)}, "
            f"{self._rate()}",
            end="\n",
        )

    def get_state(self) -> dict[str, Any]:
        """Returns the curves and the clock, for `TrainingBackup`."""
        return {
            "losses": np.array(self._losses),
            "validation": [list(pair) for pair in self._validation],
            "seconds": self._seconds,
            "in_epoch": self._in_epoch,
            "mean": self._mean,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._losses = np.asarray(state["losses"]).tolist()
        self._validation = [tuple(pair) for pair in state["validation"]]
        self._seconds = state["seconds"]
        self._in_epoch, self._mean = state["in_epoch"], state["mean"]
        self._start = time.monotonic() - self._seconds

    @property
    def losses(self) -> list[float]:
        """List of float: the loss of each batch.

        It is computed from the running mean that Keras reports: exact if all
        batches have as many rows.
        """
        return self._losses

    @property
    def validation(self) -> list[Tensor]:
        """List of (int, float): number of batches so far, validation loss."""
        return self._validation

    @property
    def seconds(self) -> float:
        """Float: duration so far, in seconds."""
        return self._seconds

    @property
    def tokens_per_second(self) -> float:
        """Float: mean rate so far; batches if no tokens are counted."""
        done = float(len(self._losses))
        if self.tokens_per_epoch is not None and self.params.get("steps"):
            done *= self.tokens_per_epoch / self.params["steps"]
        return done / max(self._seconds, 1e-9)

    def summary(self) -> dict[str, Any]:
        """Returns the results of a training, such as for a JSON file.

        Returns:
            Dict of numbers: "minutes"; "batches"; "tokens_per_second", or
            "batches_per_second" if no tokens are counted; with validation data
            "validation_loss", the lowest one; and after the start of `fit`
            "parameters", of the model.
        """
        unit = "batches" if self.tokens_per_epoch is None else "tokens"
        summary = {
            "minutes": self._seconds / 60,
            "batches": len(self._losses),
            f"{unit}_per_second": self.tokens_per_second,
        }
        if self._validation:
            loss = min(loss for _, loss in self._validation)
            summary["validation_loss"] = loss
        if self.model is not None:
            summary["parameters"] = self.model.count_params()
        return summary

    def _rate(self):
        unit = "batches" if self.tokens_per_epoch is None else "tokens"
        rate = self.tokens_per_second
        return f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s"

    def _draw(self):
        epochs, steps = self.params["epochs"], self.params["steps"]
        done, left = 0.0, None
        if steps:
            done = len(self._losses) / (epochs * steps)
            left = self._seconds * (1 - done) / max(done, 1e-9)
        if self.minutes is not None:
            limit = max(0.0, 60 * self.minutes - self._seconds)
            left = limit if left is None else min(left, limit)
        if left is not None:
            done = self._seconds / max(self._seconds + left, 1e-9)
        full = int(_BAR * done)
        bar = ("=" * full + ">")[:_BAR].ljust(_BAR)
        self._write(
            f"epoch {self._epoch + 1}/{epochs} [{bar}] {done:.0%} "
            f"loss {self._mean:.3f}, {self._rate()}"
            + ("" if left is None else f", {_clock(left)} left"),
            end="" if self._is_terminal() else "\n",
        )

    def _write(self, line, end):
        if self._is_terminal():
            # Spaces overwrite the rest of a longer line.
            padding = " " * max(0, self._width - len(line))
            self._width = len(line)
            line = f"\r{line}{padding}"
        stream = self._file or sys.stderr
        stream.write(line + end)
        stream.flush()

    def _is_terminal(self):
        stream = self._file or sys.stderr
        return bool(getattr(stream, "isatty", bool)())


def _clock(seconds):
    """Formats a duration: 0:07, 12:30, 1:02:03."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:02}"
    return f"{minutes}:{seconds:02}"
