"""Ctrl-C in `TrainingBackup.interruptible`: save, stop, resume exactly."""

import os
import signal
import time

import keras
import numpy as np
import pytest

from keras_attn.training import TrainingBackup
from tests.helpers.arrays import to_numpy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)).astype("float32")
Y = RNG.normal(size=(20, 2)).astype("float32")
EPOCHS = 3  # of 5 batches


class CtrlC(keras.callbacks.Callback):
    """Sends SIGINT to its own process, `times` times, at one moment."""

    def __init__(self, hook, at, times=1):
        super().__init__()
        self.seen = []

        def interrupt(number, logs=None):
            self.seen.append(number)
            if len(self.seen) == at:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGINT)

        setattr(self, hook, interrupt)


def fit(folder, save_freq, *callbacks):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4),
            keras.layers.Dropout(0.5, seed=1),
            keras.layers.Dense(2),
        ]
    )
    model.compile(keras.optimizers.Adam(0.1), "mse")
    backup = TrainingBackup(folder, callbacks, save_freq=save_freq)
    with backup.interruptible():
        history = model.fit(
            X,
            Y,
            batch_size=4,
            epochs=EPOCHS,
            shuffle=False,
            validation_data=(X, Y),
            callbacks=[backup],
            verbose=0,
        )
    return [to_numpy(v.value) for v in model.variables], history


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole"), "epoch")


@pytest.mark.parametrize("save_freq", ["epoch", 100])
@pytest.mark.parametrize(
    "hook, at, batches",
    [
        ("on_train_batch_end", 7, 7),
        ("on_train_batch_begin", 7, 7),
        ("on_train_batch_end", 5, 5),
        # In the validation after the first epoch, and at the very end.
        ("on_test_batch_end", 1, 5),
        ("on_train_batch_end", 15, 15),
    ],
)
def test_resumes_after_the_interrupted_batch(
    tmp_path, save_freq, hook, at, batches, whole
):
    weights, history = whole
    before = signal.getsignal(signal.SIGINT)
    interrupted = CtrlC(hook, at)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, save_freq, interrupted)
    assert signal.getsignal(signal.SIGINT) is before
    counter = CtrlC("on_train_batch_end", at=0)
    # Callbacks must have the same classes as in the backup.
    resumed, resumed_history = fit(tmp_path, save_freq, counter)
    assert len(counter.seen) == 5 * EPOCHS - batches
    for one, other in zip(weights, resumed, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert history.epoch == resumed_history.epoch
    np.testing.assert_allclose(
        history.history["val_loss"],
        resumed_history.history["val_loss"],
        rtol=1e-4,
    )


def test_interrupting_a_resuming_run_keeps_its_checkpoint(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, 100, CtrlC("on_train_batch_end", 3))
    files = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, 100, CtrlC("on_epoch_begin", 1))
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_second_interrupt_stops_immediately(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, 100, CtrlC("on_train_batch_begin", 2, times=2))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_outside_the_context_python_raises(tmp_path):
    backup = TrainingBackup(tmp_path)
    with backup.interruptible():
        pass
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
