"""A small interruptible training and its final state."""

import keras
import numpy as np

from keras_attn.training import CheckpointAverage, TrainingBackup

rng = np.random.default_rng(0)
X = rng.normal(size=(22, 3)).astype("float32")
Y = rng.normal(size=(22, 2)).astype("float32")
BATCH, STEPS, EPOCHS = 4, 6, 3


class Killed(Exception):
    pass


class KillAfter(keras.callbacks.Callback):
    """Aborts `fit` as SIGKILL would, without calling further hooks.

    Args:
        step: int. Number of training steps before the abort.
        steps: `Steps`, which counts them, without skipped steps.
    """

    def __init__(self, step, steps):
        super().__init__()
        self.step, self.steps = step, steps
        self.begin = None

    def on_train_batch_begin(self, batch, logs=None):
        if self.begin is None:
            self.begin = len(self.steps.losses)

    def on_train_batch_end(self, batch, logs=None):
        if len(self.steps.losses) - self.begin >= self.step:
            raise Killed


class Steps(keras.callbacks.Callback):
    """Records the loss of every step."""

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
            keras.layers.Dropout(
                0.4
            ),  # without a seed: PyTorch's own generator
            keras.layers.Dropout(0.4, seed=seed),
            keras.layers.Dense(2),
        ]
    )
    # On JAX, compiling takes longer than the steps. test_training_killed tests
    # compiled steps.
    options = {"metrics": ["mae"], "jit_compile": False} | options
    model.compile(keras.optimizers.Adam(0.05), "mse", **options)
    return model


class Run:
    """One process of a training, and its results."""

    def __init__(self, directory, kill=None, seed=0, epochs=EPOCHS, **options):
        self.model = make_model(seed)
        self.steps = Steps()
        self.average = options.pop("average", CheckpointAverage(2, save_freq=4))
        data = options.pop("data", Rows())
        self.backup = TrainingBackup(
            directory,
            [self.steps, self.average, *options.pop("more", [])],
            data=data,
            **{"save_freq": 2} | options,
        )
        callbacks = [self.backup]
        if kill:
            callbacks.append(KillAfter(kill, self.steps))
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
        """Returns the final state and restores the trained weights."""
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
