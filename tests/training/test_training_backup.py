"""A fit that stops anywhere and goes on ends as one that nobody disturbed."""

import keras
import numpy as np
import pytest

from keras_attn.training import CheckpointAverage, TrainingBackup

rng = np.random.default_rng(0)
X = rng.normal(size=(22, 3)).astype("float32")
Y = rng.normal(size=(22, 2)).astype("float32")
BATCH, STEPS, EPOCHS = 4, 6, 3
BACKEND = keras.backend.backend()


class Killed(Exception):
    pass


class KillAfter(keras.callbacks.Callback):
    """Ends the fit as SIGKILL would: nobody gets to do anything more."""

    def __init__(self, step):
        super().__init__()
        self.left = step

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            raise Killed


class Steps(keras.callbacks.Callback):
    """Remembers the losses, step by step, and what was called."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))

    def get_state(self):
        return {"losses": np.array(self.losses)}

    def set_state(self, state):
        self.losses = state["losses"].tolist()


class Rows(keras.utils.PyDataset):
    """Batches whose order depends on the epoch."""

    def __init__(self):
        super().__init__()
        self.epoch = 0

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        order = np.random.default_rng(self.epoch).permutation(len(X))
        rows = order[index * BATCH : (index + 1) * BATCH]
        return X[rows], Y[rows]

    def on_epoch_end(self):
        self.epoch += 1

    def set_epoch(self, epoch):
        self.epoch = epoch


def make_model(seed=0, **options):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(5, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.4),  # unseeded: PyTorch's own generator
            keras.layers.Dropout(0.4, seed=seed),
            keras.layers.Dense(2),
        ]
    )
    options = {"metrics": ["mae"]} | options
    model.compile(keras.optimizers.Adam(0.05), "mse", **options)
    return model


class Run:
    """One process's share of a training, and what came of it."""

    def __init__(self, directory, kill=None, seed=0, epochs=EPOCHS, **options):
        self.model = make_model(seed)
        self.steps = Steps()
        self.average = CheckpointAverage(2, every=4)
        data = Rows()
        self.backup = TrainingBackup(
            directory,
            [self.steps, self.average, *options.pop("more", [])],
            data=data,
            **{"every": 2} | options,
        )
        callbacks = [self.backup]
        if kill:
            callbacks.append(KillAfter(kill))
        try:
            self.history = self.model.fit(
                data,
                epochs=epochs,
                validation_data=(X, Y),
                callbacks=callbacks,
                verbose=0,
            )
        except Killed:
            self.history = None

    def end(self):
        """What the run ended with; the trained weights, not the average."""
        averaged = values(self.model.variables)
        self.average.restore()
        return {
            "averaged": averaged,
            "weights": values(self.model.variables),
            "optimizer": values(self.model.optimizer.variables),
            "losses": self.steps.losses,
            "history": self.history.history,
            "epochs": self.history.epoch,
        }


def values(variables):
    return [keras.ops.convert_to_numpy(v.value).copy() for v in variables]


def assert_same(found, expected):
    for name, value in expected.items():
        if name == "history":
            assert found[name] == value
            continue
        assert len(found[name]) == len(value), name
        for a, b in zip(found[name], value, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


def differs(found, expected):
    try:
        assert_same(found, expected)
    except AssertionError:
        return True
    return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("whole")).end()


def test_the_backup_itself_changes_nothing(undisturbed, tmp_path):
    again = Run(tmp_path, every=EPOCHS * STEPS).end()
    assert_same(again, undisturbed)
    assert len(set(undisturbed["losses"])) == EPOCHS * STEPS


# In the middle of an epoch, right at a checkpoint, at and behind an epoch's
# end, before the first checkpoint.
@pytest.mark.parametrize("kill", [1, 2, 5, 6, 7, 11, 12, 13, 17])
def test_goes_on_where_it_was_killed(kill, undisturbed, tmp_path):
    Run(tmp_path, kill)
    # Nothing but the backup could know the numbers of the first piece.
    seed = 0 if kill == 1 else 9
    assert_same(Run(tmp_path, seed=seed).end(), undisturbed)


def test_killed_again_and_again(undisturbed, tmp_path):
    for kill in (3, 2, 3, 4, 2, 3, 2):
        Run(tmp_path, kill)
    assert_same(Run(tmp_path, seed=9).end(), undisturbed)
