"""A callback that watches a training: its losses, its speed, the clock."""

import time

import keras
import numpy as np


class TrainingLog(keras.callbacks.Callback):
    """Records the loss of every step; stops when time is up.

    A `TrainingBackup` keeps it: the clock goes on where a killed run stopped.

    Args:
        minutes: float. `fit` ends with the first step past this time.
        tokens_per_epoch: int. Target tokens in one epoch, for the speed.
    """

    def __init__(self, minutes, tokens_per_epoch):
        super().__init__()
        self.minutes = minutes
        self.tokens_per_epoch = tokens_per_epoch
        self.losses = []
        self.seconds = 0.0
        self.validation = []  # (step, loss)
        self._steps_in_epoch = 0
        self._mean = 0.0

    def on_train_begin(self, logs=None):
        """Starts the clock."""
        self._start = time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        """Starts the epoch's running mean, which Keras reports, afresh."""
        self._steps_in_epoch = 0
        self._mean = 0.0

    def on_train_batch_end(self, batch, logs=None):
        """Records the step and looks at the clock."""
        count = self._steps_in_epoch + 1
        mean = float(logs["loss"])
        # Keras logs the mean since the epoch began.
        self.losses.append(mean * count - self._mean * (count - 1))
        self._mean, self._steps_in_epoch = mean, count
        self.seconds = time.monotonic() - self._start
        # `self.model` is asked for only then: on JAX that brings all weights
        # back from the running loop.
        if self.seconds > 60 * self.minutes:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        """Records the validation loss."""
        if logs and "val_loss" in logs:
            self.validation.append((len(self.losses), float(logs["val_loss"])))

    def get_state(self):
        """Returns everything recorded so far, and the clock."""
        return {
            "losses": np.array(self.losses),
            "validation": self.validation,
            "seconds": self.seconds,
            "epoch": (self._steps_in_epoch, self._mean),
        }

    def set_state(self, state):
        """Goes on from what `get_state` returned."""
        self.losses = state["losses"].tolist()
        self.validation = list(state["validation"])
        self.seconds = state["seconds"]
        self._steps_in_epoch, self._mean = state["epoch"]
        self._start = time.monotonic() - self.seconds

    def tokens_per_second(self, steps_per_epoch):
        """Returns target tokens per second, padding left out."""
        epochs = len(self.losses) / steps_per_epoch
        return epochs * self.tokens_per_epoch / max(self.seconds, 1e-9)
