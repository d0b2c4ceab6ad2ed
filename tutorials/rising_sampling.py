"""Scheduled sampling that becomes more from epoch to epoch."""

import keras


class RisingSampling(keras.callbacks.Callback):
    """Raises the probability with which a decoder reads its own tokens.

    In epoch e = 1 .. n it is p e / n. In front of each epoch, not of each step:
    the weights of a running loop are the loop's.

    Args:
        last: float in [0, 1]. p, that of the last epoch.
        epochs: int >= 1. n.

    Raises:
        ValueError: an argument out of range.
    """

    def __init__(self, last, epochs):
        super().__init__()
        if not 0 <= last <= 1 or epochs < 1:
            raise ValueError(
                "`last` must lie in [0, 1] and `epochs` be at least 1. "
                f"Received: last={last}, epochs={epochs}"
            )
        self.last, self.epochs = last, epochs

    def on_epoch_begin(self, epoch, logs=None):
        """Sets the probability of this epoch, which counts from 0."""
        share = min(1.0, (epoch + 1) / self.epochs)
        self.model.sampling_probability.assign(self.last * share)
