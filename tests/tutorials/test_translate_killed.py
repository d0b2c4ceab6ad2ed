"""`make translate` resumes after it was killed during training."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
from training_log import TrainingLog
from translate_settings import Settings, identity, read_settings

from tests.tutorials.programs import complaint, runner

# Resuming is tested on every backend in tests/training.
pytestmark = pytest.mark.one_backend

TUTORIAL = pathlib.Path(__file__).parents[2] / "tutorials/translate.py"
NAMES = {name.upper() for name in Settings._fields}
QUICK = {"QUICK": "1", "BACKUP": "2", "EPOCHS": "2", "LONGEST": "16"}


run_with = runner("translate", Settings)


def run(monkeypatch, **values):
    return run_with(monkeypatch, **QUICK | values)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run that was killed after its first checkpoint."""
    folder = tmp_path_factory.mktemp("killed")
    clean = {k: v for k, v in os.environ.items() if k not in NAMES}
    process = subprocess.Popen(
        [sys.executable, str(TUTORIAL)],
        env=clean | QUICK | {"OUT": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    end = time.monotonic() + 120
    while not list(folder.glob("backup/after-*")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert not (folder / "model.keras").exists()
    return folder


def test_different_settings_are_reported(killed, monkeypatch, capsys):
    before = sorted(killed.glob("backup/*"))
    said = complaint(run, monkeypatch, capsys, OUT=killed, DROPOUT="0.2")
    assert "dropout was 0.1 and is 0.2" in said
    assert "FRESH=1" in said
    assert sorted(killed.glob("backup/*")) == before


def test_resumed_run_gives_the_same_result(
    killed, tmp_path, monkeypatch, capsys
):
    run(monkeypatch, OUT=tmp_path)
    calm = capsys.readouterr().out
    run(monkeypatch, OUT=killed)
    resumed = capsys.readouterr().out
    assert "resuming after" not in calm
    assert "TrainingBackup: resuming after" in resumed
    for folder in (killed, tmp_path):
        assert not (folder / "backup").exists()

    results = [
        json.loads((folder / "results.json").read_text("utf-8"))
        for folder in (killed, tmp_path)
    ]
    for name in ("steps", "validation", "bleu", "samples"):
        assert results[0][name] == results[1][name], name
    models = [
        keras.saving.load_model(folder / "model.keras")
        for folder in (killed, tmp_path)
    ]
    for a, b in zip(models[0].weights, models[1].weights, strict=True):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(a), keras.ops.convert_to_numpy(b)
        )


def test_settings_that_may_change_when_resuming():
    run = read_settings({"DROPOUT": "0.2", "FRESH": "1"})
    assert run.fresh and run.dropout == 0.2
    assert identity(run)["dropout"] == 0.2
    again = run._replace(epochs=99, minutes=1.0, fresh=False, backup=1)
    assert identity(again) == identity(run)
    json.dumps(identity(run))


def test_training_time_includes_earlier_runs():
    def begun():
        log = TrainingLog(minutes=1, tokens_per_epoch=100)
        log.on_train_begin()
        log.on_epoch_begin(0)
        return log

    first = begun()
    first._start -= 50
    first.on_train_batch_end(0, {"loss": 4.0})
    second = begun()
    second.set_state(first.get_state())
    second.set_model(keras.Sequential())
    second.model.stop_training = False
    second.on_train_batch_end(1, {"loss": 3.0})
    assert second.losses == [4.0, 2.0]
    assert 50 <= second.seconds < 60 and not second.model.stop_training
    second._start -= 10
    second.on_train_batch_end(2, {"loss": 3.0})
    assert second.model.stop_training
