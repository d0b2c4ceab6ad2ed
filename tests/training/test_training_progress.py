"""TrainingProgress: its line, curves, time limit and saved state."""

import io
import re

import keras
import numpy as np
import pytest

from keras_attn.training import TrainingBackup, TrainingProgress
from keras_attn.training import training_progress as module

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)).astype("float32")
Y = RNG.normal(size=(20, 2)).astype("float32")
STEPS = 5


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Time that passes only in the batches of `fit`."""

    def __init__(self, monkeypatch, seconds=1.0):
        self.now = 1000.0
        self.seconds = seconds
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)

    def tick(self):
        self.now += self.seconds


class Batches(keras.callbacks.Callback):
    """Lets time pass, and records the losses that Keras reports."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.means = clock, []

    def on_train_batch_end(self, batch, logs=None):
        self.clock.tick()
        self.means.append(float(logs["loss"]))


def fit(*callbacks, epochs=2, **keywords):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse", **keywords)
    return model.fit(
        X,
        Y,
        batch_size=4,
        epochs=epochs,
        shuffle=False,
        validation_data=(X, Y),
        callbacks=list(callbacks),
        verbose=0,
    )


def test_line_on_a_terminal(monkeypatch):
    stream, clock = Terminal(), Clock(monkeypatch)
    progress = TrainingProgress(tokens_per_epoch=500, file=stream)
    fit(Batches(clock), progress)
    first, *_, last = stream.getvalue().split("\r")[1:]
    # After one of ten batches of 100 tokens a second.
    assert re.fullmatch(
        r"epoch 1/2 \[==> +\] 10% loss \d\.\d{3}, 100 tokens/s, 0:09 left",
        first.strip(),
    )
    assert last.endswith("\n")
    assert last.rstrip() == "10 batches in 0:10, 100 tokens/s"
    # It overwrites the longer line before it.
    assert len(last) > len(first)


def test_lines_in_a_file(monkeypatch):
    stream, clock = io.StringIO(), Clock(monkeypatch, seconds=20)
    fit(Batches(clock), TrainingProgress(file=stream))
    lines = stream.getvalue().splitlines()
    # Each 40 seconds of 200, and the summary.
    assert len(lines) == 6 and "\r" not in stream.getvalue()
    assert lines[0].endswith("0.1 batches/s, 2:40 left")
    assert lines[-1] == "10 batches in 3:20, 0.1 batches/s"


def test_time_limit(monkeypatch):
    stream, clock = Terminal(), Clock(monkeypatch, seconds=10)
    progress = TrainingProgress(minutes=0.5, file=stream)
    fit(Batches(clock), progress)
    assert len(progress.losses) == 3 and progress.seconds == 30
    assert "33% loss" in stream.getvalue()
    assert "0:20 left" in stream.getvalue()


def test_curves_are_those_of_fit(monkeypatch):
    batches = Batches(Clock(monkeypatch))
    progress = TrainingProgress(file=io.StringIO())
    history = fit(batches, progress)
    losses = np.array(progress.losses).reshape(2, STEPS)
    means = losses.cumsum(1) / np.arange(1, STEPS + 1)
    np.testing.assert_allclose(means.ravel(), batches.means, rtol=1e-5)
    np.testing.assert_allclose(
        progress.validation,
        list(zip([5, 10], history.history["val_loss"], strict=True)),
        rtol=1e-6,
    )


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras requires one step per execution (as of Keras 3.15.1)",
)
def test_several_batches_in_one_execution(monkeypatch):
    batches = Batches(Clock(monkeypatch))
    progress = TrainingProgress(file=io.StringIO())
    fit(batches, progress, steps_per_execution=2)
    assert len(progress.losses) == 10
    np.testing.assert_allclose(
        np.mean(progress.losses[5:]), batches.means[-1], rtol=1e-5
    )


def test_resumed_run_continues_curves_and_clock(monkeypatch, tmp_path):
    whole = TrainingProgress(file=io.StringIO())
    clock = Clock(monkeypatch)
    fit(Batches(clock), whole)

    class Stop(Batches):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if len(self.means) == 7:
                raise KeyboardInterrupt

    def backed_up(batches):
        progress = TrainingProgress(file=io.StringIO())
        backup = TrainingBackup(tmp_path, [progress], save_freq=2)
        fit(batches, backup)
        return progress

    with pytest.raises(KeyboardInterrupt):
        backed_up(Stop(clock))
    clock.now += 1000  # between the two runs
    resumed = backed_up(Batches(clock))
    assert len(resumed.losses) == 10
    np.testing.assert_allclose(resumed.losses, whole.losses, rtol=1e-4)
    np.testing.assert_allclose(resumed.validation, whole.validation, rtol=1e-4)
    # Without the time between the runs and that of the repeated batch.
    assert resumed.seconds <= whole.seconds + 7


@pytest.mark.parametrize(
    "arguments", [{"minutes": 0}, {"tokens_per_epoch": 1.5}, {"file": "log"}]
)
def test_bad_arguments(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        TrainingProgress(**arguments)


@pytest.mark.parametrize("tokens, unit", [(None, "batches"), (500, "tokens")])
def test_summary(monkeypatch, tokens, unit):
    clock = Clock(monkeypatch, seconds=3.0)
    progress = TrainingProgress(tokens_per_epoch=tokens, file=Terminal())
    fit(Batches(clock), progress)
    assert progress.summary() == {
        "minutes": 0.5,
        "batches": 2 * STEPS,
        f"{unit}_per_second": pytest.approx((tokens or STEPS) / 15),
        "validation_loss": min(loss for _, loss in progress.validation),
        "parameters": progress.model.count_params(),
    }
    assert "validation_loss" not in TrainingProgress().summary()
