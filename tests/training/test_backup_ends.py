"""Backups of finished runs, and runs after them."""

import keras
import numpy as np
import pytest

from keras_attn.training import TrainingBackup
from tests.helpers.backup_runs import (
    EPOCHS,
    STEPS,
    Rows,
    Run,
    X,
    Y,
    assert_same,
    make_model,
    values,
)

# Independent of the backend. What each backend restores is tested in
# `test_training_backup`.
pytestmark = pytest.mark.one_backend


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run, and its final state."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, Run(folder).end()


def test_finished_run_is_restored_without_training(finished):
    folder, end = finished
    # The program may be killed after `fit`.
    again = Run(folder, seed=9)
    assert again.steps.losses == end["losses"]
    assert again.history.epoch == [0, 1, 2]
    assert_same(again.end(), end)


@pytest.mark.parametrize("every", ["epoch", 100])
def test_more_epochs_equal_one_longer_run(every, tmp_path):
    Run(tmp_path / "a", save_freq=every)
    longer = Run(tmp_path / "a", seed=9, save_freq=every, epochs=EPOCHS + 2)
    calm = Run(tmp_path / "b", save_freq=every, epochs=EPOCHS + 2)
    assert_same(longer.end(), calm.end())


def test_fewer_epochs_train_nothing(finished):
    folder, end = finished
    again = Run(folder, seed=9, epochs=1)
    assert again.steps.losses == end["losses"]


def test_run_after_remove_starts_from_scratch(tmp_path):
    first = Run(tmp_path / "made" / "here")
    assert first.backup.directory == str(tmp_path / "made" / "here")
    assert len(list((tmp_path / "made" / "here").iterdir())) == 2
    first.backup.remove()
    assert not (tmp_path / "made" / "here").exists()
    first.backup.remove()
    again = Run(tmp_path / "made" / "here")
    assert len(again.steps.losses) == EPOCHS * STEPS
    assert_same(again.end(), first.end())


def test_remove_keeps_other_files(tmp_path):
    run = Run(tmp_path)
    (tmp_path / "mine.txt").write_text("stays")
    run.backup.remove()
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_resume_false_starts_from_scratch(tmp_path):
    Run(tmp_path)
    again = Run(tmp_path, resume=False, epochs=1)
    assert len(again.steps.losses) == STEPS


def early_stopping():
    return keras.callbacks.EarlyStopping(
        "val_loss", patience=2, restore_best_weights=True, min_delta=0.05
    )


def test_early_stopping_is_resumed(tmp_path):
    options = {"epochs": 30, "save_freq": 4}
    stopping = early_stopping()
    calm = Run(tmp_path / "calm", more=[stopping], **options)
    assert 2 < len(calm.history.epoch) < 30
    calm_weights = values(calm.model.variables)
    # After the best epoch, within the patience.
    kill = STEPS * (stopping.best_epoch + 1) + 5
    Run(tmp_path / "killed", kill, more=[early_stopping()], **options)
    resumed = Run(
        tmp_path / "killed", seed=9, more=[early_stopping()], **options
    )
    assert resumed.history.epoch == calm.history.epoch
    found = values(resumed.model.variables)
    assert all(map(np.array_equal, found, calm_weights))
    # A stopped run stays stopped.
    again = Run(tmp_path / "killed", seed=9, more=[early_stopping()], **options)
    assert again.history.epoch == calm.history.epoch
    found = values(again.model.variables)
    assert all(map(np.array_equal, found, calm_weights))


class StopAfter(keras.callbacks.Callback):
    def __init__(self, step):
        super().__init__()
        self.left = step

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            self.model.stop_training = True


def test_run_stopped_within_an_epoch_stays_stopped(tmp_path):
    calm = Run(tmp_path, more=[StopAfter(STEPS + 2)])
    assert len(calm.steps.losses) == STEPS + 2
    again = Run(tmp_path, seed=9, more=[StopAfter(99)])
    assert again.steps.losses == calm.steps.losses
    assert_same(again.end(), calm.end())


def test_learning_rate_callbacks_are_resumed(tmp_path):
    def callbacks():
        return [
            keras.callbacks.LearningRateScheduler(lambda _, rate: rate * 0.5),
            keras.callbacks.ReduceLROnPlateau(
                "val_loss", patience=1, factor=0.3, min_delta=100.0
            ),
        ]

    calm = Run(tmp_path / "calm", more=callbacks())
    Run(tmp_path / "killed", STEPS + 5, more=callbacks())
    resumed = Run(tmp_path / "killed", seed=9, more=callbacks())
    assert len(set(calm.history.history["learning_rate"])) == EPOCHS
    assert_same(resumed.end(), calm.end())


def test_later_fit_starts_at_epoch_zero(tmp_path):
    run = Run(tmp_path, kill=STEPS + 3)
    run = Run(tmp_path, seed=9)
    history = run.model.fit(X, Y, epochs=1, verbose=0)
    assert history.epoch == [0]
    run = Run(tmp_path, seed=9)  # nothing left to train
    history = run.model.fit(X, Y, epochs=1, verbose=0)
    assert history.epoch == [0]


def test_resumption_is_printed(tmp_path, capsys):
    def fit(verbose, epochs, **options):
        backup = TrainingBackup(tmp_path, data=(data := Rows()), **options)
        make_model().fit(
            data, epochs=epochs, callbacks=[backup], verbose=verbose
        )
        return capsys.readouterr().out

    assert "TrainingBackup" not in fit(2, 1)
    said = fit(2, 2)
    assert "TrainingBackup: resuming after 1 epochs and 0 batches" in said
    assert str(tmp_path) in said
    assert "TrainingBackup: training is complete" in fit(2, 2)
    assert fit(0, 2) == ""
