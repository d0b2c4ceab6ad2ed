"""A callback that ends a training after so many steps."""

import keras


class StopAt(keras.callbacks.Callback):
    """Ends a training after so many steps, in the middle of a pass or not.

    A `TrainingBackup` keeps the count.

    Args:
        steps: int.
    """

    def __init__(self, steps):
        super().__init__()
        self.steps, self.done = steps, 0

    def on_train_batch_end(self, batch, logs=None):
        """Counts."""
        self.done += 1
        if self.done >= self.steps:
            self.model.stop_training = True

    def get_state(self):
        """Returns what a backup keeps."""
        return {"done": self.done}

    def set_state(self, state):
        """Goes on from it."""
        self.done = state["done"]
