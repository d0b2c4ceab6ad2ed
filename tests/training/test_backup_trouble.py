"""Backups with full disks, damaged files and mismatched runs."""

import errno
import os

import keras
import numpy as np
import pytest

from keras_attn.training import (
    CheckpointAverage,
    TrainingBackup,
    state_file,
)
from tests.helpers.backup_runs import (
    STEPS,
    KillAfter,
    Killed,
    Rows,
    Run,
    Steps,
    X,
    Y,
    assert_same,
    make_model,
)
from tests.helpers.full_disk import full_disk

pytestmark = pytest.mark.one_backend


def ours(warned):
    said = [str(warning.message) for warning in warned]
    return [text for text in said if text.startswith("TrainingBackup")]


def files(folder):
    return sorted(path.name for path in folder.iterdir())


class FullFrom(keras.callbacks.Callback):
    """Fills the disk before step `begin` and frees it after step `end`."""

    def __init__(self, begin, end):
        super().__init__()
        self.begin, self.end, self.step = begin, end, 0
        self.full = None

    def on_train_batch_begin(self, batch, logs=None):
        if self.step == self.begin:
            self.full = full_disk(2000)
            self.full.__enter__()
        self.step += 1

    def on_train_batch_end(self, batch, logs=None):
        if self.step == self.end:
            self.full.__exit__(None, None, None)


def test_full_disk_warns_once_and_keeps_earlier_checkpoints(tmp_path):
    # Checkpoints after steps 2 and 4; none after 6 (a batch), 8, 10; then 12.
    run = {}
    disk = FullFrom(4, 11)
    with pytest.warns(UserWarning) as warned:
        run["first"] = Run(tmp_path, kill=11, more=[disk])
    (said,) = ours(warned)
    assert "no checkpoint after 0 epochs and 6 batches: File too large" in said
    assert "000004-batches.npz" in said and "\n" not in said
    assert [name.split("-")[3] for name in files(tmp_path)] == [
        "000000002",
        "000000004",
    ]
    calm = Run(tmp_path / "calm").end()
    resumed = Run(tmp_path, seed=9, more=[FullFrom(99, 99)])
    assert_same(resumed.end(), calm)


def test_second_full_disk_warns_again(tmp_path, monkeypatch):
    outcome = iter([None, OSError, OSError, None, OSError] + [None] * 20)
    write = state_file.write_state

    def write_or_not(path, state):
        if next(outcome):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, state)

    monkeypatch.setattr(
        "keras_attn.training.backup_folder.write_state", write_or_not
    )
    with pytest.warns(UserWarning) as warned:
        Run(tmp_path)
    said = ours(warned)
    positions = [text.split(" after ")[1].split(":")[0] for text in said]
    assert positions == ["0 epochs and 4 batches", "1 epochs and 4 batches"]
    assert all("No space left on device. Training continues" in t for t in said)


def test_disk_that_is_never_writable_warns(tmp_path, monkeypatch):
    def never(path, state):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("keras_attn.training.backup_folder.write_state", never)
    with pytest.warns(
        UserWarning, match="last checkpoint is yet to be written"
    ):
        run = Run(tmp_path)
    assert len(run.steps.losses) == 3 * STEPS


def test_unwritable_folder_raises(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="`directory` must be a folder"):
            TrainingBackup(folder)
    with full_disk(), pytest.raises(ValueError, match="can be written to"):
        TrainingBackup(tmp_path)


def test_folder_replaced_before_fit_raises(tmp_path):
    backup = TrainingBackup(tmp_path / "a")
    os.rmdir(tmp_path / "a")
    (tmp_path / "a").write_text("")
    with pytest.raises(ValueError, match="`directory` must be a folder"):
        make_model().fit(X, Y, callbacks=[backup], verbose=0)


def damage(path):
    path.write_bytes(path.read_bytes()[:-100])


def test_damaged_checkpoint_is_skipped_with_a_warning(tmp_path):
    calm = Run(tmp_path / "calm").end()
    Run(tmp_path / "killed", kill=9)
    older, newest = sorted((tmp_path / "killed").iterdir())
    damage(newest)
    with pytest.warns(UserWarning) as warned:
        resumed = Run(tmp_path / "killed", seed=9, kill=3)
    (said,) = ours(warned)
    assert f"{newest} cannot be read" in said and str(older) in said
    # A new checkpoint replaces the damaged one, not the good one.
    assert older.name in files(tmp_path / "killed")
    resumed = Run(tmp_path / "killed", seed=9)
    assert_same(resumed.end(), calm)


def encrypted(path):
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def without_settings(path):
    state = state_file.read_state(path)
    del state["settings"]
    state_file.write_state(path, state)


def settings_of_another_type(path):
    state = state_file.read_state(path) | {"settings": [1]}
    state_file.write_state(path, state)


def another_state(path):
    state_file.write_state(path, [1, 2])


@pytest.mark.parametrize(
    "harm, reason",
    [
        (encrypted, "is encrypted"),
        (without_settings, "its entry 'settings' is missing"),
        (settings_of_another_type, "its entry 'settings' must be a dict"),
        (another_state, "it holds a list"),
    ],
)
def test_any_damage_falls_back_to_the_previous_checkpoint(
    harm, reason, tmp_path
):
    Run(tmp_path, kill=9, settings={"a": 1})
    older, newest = sorted(tmp_path.iterdir())
    harm(newest)
    with pytest.warns(UserWarning) as warned:
        TrainingBackup(tmp_path, settings={"a": 1})
    (said,) = ours(warned)
    assert f"{newest} cannot be read" in said and reason in said
    assert f"resumes from {older}" in said and "\n" not in said
    with (
        pytest.warns(UserWarning, match="cannot be read"),
        pytest.raises(ValueError, match="a was 1 and is 2"),
    ):
        TrainingBackup(tmp_path, settings={"a": 2})
    # The damaged one does not hinder later checkpoints.
    callbacks = [Steps(), CheckpointAverage(2, save_freq=4)]
    with pytest.warns(UserWarning, match="cannot be read"):
        backup = TrainingBackup(
            tmp_path, callbacks, 2, data=Rows(), settings={"a": 1}
        )
    make_model().fit(
        backup.data,
        epochs=3,
        callbacks=[backup],
        validation_data=(X, Y),
        verbose=0,
    )
    assert len(callbacks[0].losses) == 3 * STEPS
    assert newest.name not in files(tmp_path)


def test_only_damaged_checkpoints_raise(tmp_path):
    Run(tmp_path, kill=9)
    for path in tmp_path.iterdir():
        damage(path)
    before = files(tmp_path)
    with pytest.raises(ValueError, match="must hold a readable checkpoint"):
        Run(tmp_path)
    assert files(tmp_path) == before
    assert len(Run(tmp_path, resume=False).steps.losses) == 3 * STEPS


def test_partial_files_are_removed(tmp_path):
    Run(tmp_path, kill=5)
    part = tmp_path / f".partial-1-{files(tmp_path)[0]}"
    part.write_bytes(b"half")
    TrainingBackup(tmp_path)
    assert not part.exists() and len(files(tmp_path)) == 2


def test_last_two_checkpoints_are_kept(tmp_path):
    Run(tmp_path)
    assert files(tmp_path) == [
        "after-000002-epochs-000000006-batches.npz",
        "after-000003-epochs-000000000-batches.npz",
    ]


def test_other_settings_raise(tmp_path):
    Run(tmp_path, settings={"layers": 2, "data": "a", "gone": [1]}, kill=5)
    before = files(tmp_path)
    Run(tmp_path, settings={"layers": 2, "data": "a", "gone": (1,)}, kill=5)
    with pytest.raises(ValueError) as info:
        TrainingBackup(tmp_path, settings={"layers": 3, "data": "a"})
    said = str(info.value)
    assert "layers was 2 and is 3" in said
    assert "gone was [1] and is None" in said
    assert "data" not in said.split("where")[1] and "\n" not in said
    assert "resume=False" in said
    assert len(files(tmp_path)) == len(before)
    with pytest.raises(ValueError, match="must be a dict of plain values"):
        TrainingBackup(tmp_path, settings={"a": object()})


def sequential(width, optimizer):
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(width)]
    )
    model.compile(optimizer, "mse")
    return model


@pytest.mark.parametrize(
    "width, optimizer, callbacks, answer",
    [
        (3, "adam", [Steps()], r"/kernel of shape \(4, 2\) there, .*\(4, 3\)"),
        (2, "sgd", [Steps()], "10 variables of the optimizer there, 2 here"),
        (2, "adam", [], r"those of the backup, \['Steps'\]. Received: \[\]"),
    ],
)
def test_other_model_or_callbacks_raise(
    width, optimizer, callbacks, answer, tmp_path
):
    backup = TrainingBackup(tmp_path, [Steps()])
    sequential(2, "adam").fit(X, Y, callbacks=[backup], verbose=0)
    model = sequential(width, optimizer)
    before = model.get_weights()
    with pytest.raises(ValueError, match=answer) as info:
        backup = TrainingBackup(tmp_path, callbacks)
        model.fit(X, X[:, :width], callbacks=[backup], epochs=2, verbose=0)
    assert "\n" not in str(info.value)
    if callbacks:
        assert all(map(np.array_equal, model.get_weights(), before))


def test_other_number_of_weights_raises(tmp_path):
    backup = TrainingBackup(tmp_path)
    sequential(2, "adam").fit(X, Y, callbacks=[backup], verbose=0)
    with pytest.raises(ValueError, match="4 variables of the model there, 10"):
        make_model().fit(X, Y, callbacks=[TrainingBackup(tmp_path)], verbose=0)


class Fewer(Rows):
    def __len__(self):
        return 3


def test_fewer_batches_raise(tmp_path):
    Run(tmp_path, kill=5)
    with pytest.raises(ValueError, match="trained on 4 batches of epoch 1"):
        Run(tmp_path, data=Fewer())


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow",
    reason="Keras raises first, because there was no training step",
)
@pytest.mark.filterwarnings("ignore:Your input ran out of data:UserWarning")
def test_fewer_batches_from_a_generator_raise(tmp_path):
    def batches(count):
        for _ in range(count):
            yield X, Y

    def fit(count):
        steps = Steps()
        backup = TrainingBackup(tmp_path, [steps], save_freq=2)
        callbacks = [backup, KillAfter(5, steps)]
        make_model().fit(
            batches(count), shuffle=False, callbacks=callbacks, verbose=0
        )

    with pytest.raises(Killed):
        fit(6)
    with pytest.raises(ValueError, match=r"4 batches of epoch 1.*: few"):
        fit(3)


def test_aborted_fit_does_not_leave_the_model_skipping(tmp_path):
    Run(tmp_path, kill=5)
    model = make_model()

    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            raise KeyboardInterrupt

    average = CheckpointAverage(2, save_freq=4)
    for callbacks in ([Interrupt()], []):
        backup = TrainingBackup(tmp_path, [Steps(), average], data=Rows())
        try:
            model.fit(
                backup.data, callbacks=[backup, *callbacks], verbose=0, epochs=3
            )
        except KeyboardInterrupt:
            assert callbacks
    assert len(backup.callbacks[0].losses) == 3 * STEPS


@pytest.mark.every_backend
def test_model_that_is_not_built_raises(tmp_path):
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    if keras.backend.backend() != "tensorflow":
        model.fit(X, Y, callbacks=[TrainingBackup(tmp_path)], verbose=0)
        return  # Keras builds it before it calls the first callback.
    with pytest.raises(ValueError, match="`model` must be built before `fit`"):
        model.fit(X, Y, callbacks=[TrainingBackup(tmp_path)], verbose=0)


@pytest.mark.parametrize(
    "arguments, answer",
    [
        ({"save_freq": 0}, "`save_freq` must be"),
        ({"save_freq": 1.5}, "`save_freq` must be"),
        ({"data": X}, "`data` must have a method `set_epoch"),
        ({"callbacks": [1]}, "`callbacks` must be a list"),
        ({"callbacks": None}, "`callbacks` must be a list"),
        ({"callbacks": Steps()}, "`callbacks` must be a list"),
        ({"settings": {"a": float("nan")}}, "`settings` must be a dict"),
        ({"settings": 1}, "`settings` must be a dict"),
        ({"resume": "no"}, "`resume` must be True or False"),
        ({"resume": None}, "`resume` must be True or False"),
    ],
)
def test_invalid_arguments_raise(arguments, answer, tmp_path):
    with pytest.raises(ValueError, match=answer) as info:
        TrainingBackup(tmp_path / "never", **arguments)
    assert "\n" not in str(info.value)
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("directory", [None, 1, b"x", ["a"], ""])
def test_invalid_directories_raise(directory):
    with pytest.raises(ValueError, match="`directory` must be a path"):
        TrainingBackup(directory)


def test_unsupported_callback_state_raises(tmp_path):
    class Odd(Steps):
        def get_state(self):
            return {"model": self.model}

    with pytest.raises(ValueError, match="must be a nest of dict"):
        Run(tmp_path, more=[Odd()])
