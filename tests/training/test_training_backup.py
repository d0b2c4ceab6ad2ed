"""A fit that stops anywhere and goes on ends as one that nobody disturbed."""

import shutil

import keras
import numpy as np
import pytest

from keras_attn.training import CheckpointAverage, TrainingBackup
from keras_attn.training import training_backup as module
from keras_attn.training.callback_group import CallbackGroup
from tests.helpers.cases import once
from tests.training.backup_runs import (
    BATCH,
    EPOCHS,
    STEPS,
    KillAfter,
    Killed,
    Rows,
    Run,
    Steps,
    X,
    Y,
    assert_same,
    differs,
    make_model,
    values,
)

BACKEND = keras.backend.backend()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("whole")).end()


def test_the_backup_itself_changes_nothing(undisturbed, tmp_path):
    again = Run(tmp_path, save_freq=EPOCHS * STEPS).end()
    assert_same(again, undisturbed)
    assert len(set(undisturbed["losses"])) == EPOCHS * STEPS


# In the middle of an epoch, right at a checkpoint, at and behind an epoch's
# end, before the first checkpoint.
@pytest.mark.parametrize("kill", [6, 17, *once([1, 7])])
def test_goes_on_where_it_was_killed(kill, undisturbed, tmp_path):
    Run(tmp_path, kill)
    # Nothing but the backup could know the numbers of the first piece.
    seed = 0 if kill == 1 else 9
    assert_same(Run(tmp_path, seed=seed).end(), undisturbed)


@pytest.mark.one_backend
def test_killed_again_and_again(undisturbed, tmp_path):
    for kill in (3, 5, 2, 4):
        Run(tmp_path, kill)
    assert_same(Run(tmp_path, seed=9).end(), undisturbed)


# Each piece that a checkpoint holds, left out.
def without_seeds(model, state, groups=("model", "optimizer")):
    seeds = [v for v in model.variables if "seed" in v.path]
    assert seeds
    before = values(seeds)
    set_model_state(model, state, groups)
    for variable, value in zip(seeds, before, strict=True):
        variable.assign(value)


def without(left_out):
    def set_some(model, state, groups=("model", "optimizer")):
        set_model_state(model, state, set(groups) - {left_out})

    return set_some


set_model_state = module.set_model_state
PIECES = {
    "seeds": (module, "set_model_state", without_seeds),
    "weights": (module, "set_model_state", without("model")),
    "optimizer": (module, "set_model_state", without("optimizer")),
    "metrics": (module, "set_model_state", without("metrics")),
    "callbacks": (CallbackGroup, "set_states", lambda self, states: None),
    "order": (Rows, "set_epoch", lambda self, epoch: None),
    "place": (
        module.backend,
        "skip_steps",
        lambda model, batches, logs, then: then((X[:BATCH], Y[:BATCH])),
    ),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run that was killed in its last epoch."""
    folder = tmp_path_factory.mktemp("killed")
    Run(folder, kill=2 * STEPS + 3)
    return folder


# Seeds, optimizer and position are restored by the backend.
@pytest.mark.parametrize(
    "piece",
    [
        *("seeds", "optimizer", "place"),
        *once(sorted(PIECES.keys() - {"seeds", "optimizer", "place"})),
    ],
)
def test_no_piece_can_be_left_out(
    piece, killed, undisturbed, tmp_path, monkeypatch
):
    shutil.copytree(killed, tmp_path / "copy")
    with monkeypatch.context() as patch:
        patch.setattr(*PIECES[piece])
        assert differs(Run(tmp_path / "copy", seed=9).end(), undisturbed)


class Shuffled:
    """A run on arrays that Keras shuffles with the global random numbers."""

    def __init__(self, directory, kill=None, seed=0):
        self.model = make_model(seed)
        callbacks = [TrainingBackup(directory, [steps := Steps()], save_freq=2)]
        if kill:
            callbacks.append(KillAfter(kill, steps))
        try:
            self.model.fit(
                X, Y, BATCH, epochs=2, callbacks=callbacks, verbose=0
            )
        except Killed:
            pass
        self.weights = values(self.model.variables)


@pytest.mark.skipif(
    BACKEND == "tensorflow",
    reason="Keras shuffles with numbers that TensorFlow does not give away",
)
def test_arrays_shuffled_anew_each_epoch(tmp_path, monkeypatch):
    calm = Shuffled(tmp_path / "calm").weights

    def resumed(folder):
        Shuffled(folder, kill=9)
        found = Shuffled(folder, seed=9).weights
        return all(map(np.array_equal, found, calm))

    assert resumed(tmp_path / "a")
    monkeypatch.setattr(module.backend, "set_random_state", lambda state: None)
    assert not resumed(tmp_path / "b")


@pytest.mark.skipif(
    BACKEND == "torch",
    reason="Keras refuses steps_per_execution > 1 on PyTorch",
)
@pytest.mark.parametrize("kill", [5, *once([2])])
def test_several_steps_per_execution(kill, tmp_path):
    # Executions end at batches 4 and 6: the second of an epoch is cut short.
    def run(directory, kill=None, seed=0, **options):
        model = make_model(seed, **{"steps_per_execution": 4} | options)
        steps, data = Steps(), Rows()
        callbacks = [TrainingBackup(directory, [steps], save_freq=4, data=data)]
        if kill:
            callbacks.append(KillAfter(kill, steps))
        try:
            model.fit(data, epochs=3, callbacks=callbacks, verbose=0)
        except Killed:
            pass
        return values([*model.variables, *model.optimizer.variables])

    calm = run(tmp_path / "calm")
    run(tmp_path / "killed", kill)
    with pytest.raises(ValueError, match="steps_per_execution=1, and 4 in"):
        run(tmp_path / "killed", steps_per_execution=1)
    found = run(tmp_path / "killed", seed=9)
    assert all(map(np.array_equal, found, calm))


@pytest.mark.one_backend
def test_averages_kept_in_files(undisturbed, tmp_path):
    def run(kill=None, seed=0):
        return Run(
            tmp_path / "backup",
            kill,
            seed,
            # Oftener than there are backups: its files run ahead of them.
            average=CheckpointAverage(
                2, save_freq=1, directory=tmp_path / "kept"
            ),
            save_freq=5,
        )

    run(kill=9)
    resumed = run(seed=9)
    resumed.average.restore()
    trained = values(resumed.model.variables)
    for a, b in zip(trained, undisturbed["weights"], strict=True):
        np.testing.assert_array_equal(a, b)
    assert resumed.average.steps == [EPOCHS * STEPS - 1, EPOCHS * STEPS]
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_model_in_low_precision(tmp_path):
    def run(folder, kill=None):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [
                keras.Input((3,)),
                keras.layers.Dense(4, dtype="bfloat16"),
                keras.layers.Dropout(0.5, dtype="bfloat16"),
                keras.layers.Dense(2, dtype="mixed_float16"),
            ]
        )
        model.compile("adam", "mse", auto_scale_loss=True)
        average, steps = CheckpointAverage(2, save_freq=1), Steps()
        callbacks = [TrainingBackup(folder, [average, steps], 2, Rows())]
        if kill:
            callbacks.append(KillAfter(kill, steps))
        try:
            data = callbacks[0].data
            model.fit(data, epochs=2, callbacks=callbacks, verbose=0)
        except Killed:
            return None
        return values([*model.variables, *model.optimizer.variables])

    calm = run(tmp_path / "calm")
    run(tmp_path / "killed", 5)
    for a, b in zip(run(tmp_path / "killed"), calm, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.astype("float32"), b.astype("float32"))
