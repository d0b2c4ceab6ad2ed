"""An interrupted and resumed fit equals an uninterrupted one."""

import shutil

import keras
import numpy as np
import pytest

from keras_attn.training import CheckpointAverage, TrainingBackup
from keras_attn.training import training_backup as module
from keras_attn.training.callback_group import CallbackGroup
from tests.helpers.backup_runs import (
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
from tests.helpers.cases import once

BACKEND = keras.backend.backend()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("whole")).end()


def test_backup_does_not_change_the_training(uninterrupted, tmp_path):
    again = Run(tmp_path, save_freq=EPOCHS * STEPS).end()
    assert_same(again, uninterrupted)
    assert len(set(uninterrupted["losses"])) == EPOCHS * STEPS


# Within an epoch, at a checkpoint, at and after the end of an epoch, before the
# first checkpoint.
@pytest.mark.parametrize("kill", [6, 17, *once([1, 7])])
def test_resumes_where_it_was_killed(kill, uninterrupted, tmp_path):
    Run(tmp_path, kill)
    # With another seed, only the backup can give the same numbers.
    seed = 0 if kill == 1 else 9
    assert_same(Run(tmp_path, seed=seed).end(), uninterrupted)


@pytest.mark.one_backend
def test_killed_several_times(uninterrupted, tmp_path):
    for kill in (3, 5, 2, 4):
        Run(tmp_path, kill)
    assert_same(Run(tmp_path, seed=9).end(), uninterrupted)


# Each part of a checkpoint, left out.
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
PARTS = {
    "seeds": (module, "set_model_state", without_seeds),
    "weights": (module, "set_model_state", without("model")),
    "optimizer": (module, "set_model_state", without("optimizer")),
    "metrics": (module, "set_model_state", without("metrics")),
    "callbacks": (CallbackGroup, "set_states", lambda self, states: None),
    "order": (Rows, "set_epoch", lambda self, epoch: None),
    "position": (
        module.backend,
        "skip_steps",
        lambda model, batches, logs, then: then((X[:BATCH], Y[:BATCH])),
    ),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run killed in its last epoch."""
    folder = tmp_path_factory.mktemp("killed")
    Run(folder, kill=2 * STEPS + 3)
    return folder


# Seeds, optimizer and position are restored by the backend.
@pytest.mark.parametrize(
    "part",
    [
        *("seeds", "optimizer", "position"),
        *once(sorted(PARTS.keys() - {"seeds", "optimizer", "position"})),
    ],
)
def test_every_part_of_a_checkpoint_is_needed(
    part, killed, uninterrupted, tmp_path, monkeypatch
):
    shutil.copytree(killed, tmp_path / "copy")
    with monkeypatch.context() as patch:
        patch.setattr(*PARTS[part])
        assert differs(Run(tmp_path / "copy", seed=9).end(), uninterrupted)


class Shuffled:
    """A run on arrays that Keras shuffles with the global random state."""

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
    reason="TensorFlow does not expose the random state of the shuffle",
)
def test_arrays_shuffled_in_each_epoch(tmp_path, monkeypatch):
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
    # Executions end at batches 4 and 6: the second of an epoch is shorter.
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
def test_checkpoint_average_in_files(uninterrupted, tmp_path):
    def run(kill=None, seed=0):
        return Run(
            tmp_path / "backup",
            kill,
            seed,
            # More often than backups, so its files are ahead of them.
            average=CheckpointAverage(
                2, save_freq=1, directory=tmp_path / "kept"
            ),
            save_freq=5,
        )

    run(kill=9)
    resumed = run(seed=9)
    resumed.average.restore()
    trained = values(resumed.model.variables)
    for a, b in zip(trained, uninterrupted["weights"], strict=True):
        np.testing.assert_array_equal(a, b)
    assert resumed.average.steps == [EPOCHS * STEPS - 1, EPOCHS * STEPS]
    assert len(list((tmp_path / "kept").iterdir())) == 2


@pytest.mark.parametrize("quantized", [False, *once([True])])
def test_low_precision_model(quantized, tmp_path):
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
        if quantized:
            model.layers[0].quantize("int8")
            model.layers[0].enable_lora(2)
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
