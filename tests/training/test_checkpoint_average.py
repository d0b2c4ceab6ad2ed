"""CheckpointAverage against NumPy means of weights recorded step by step."""

import functools
import os

import keras
import numpy as np
import pytest

from keras_attn.training import CheckpointAverage

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3)).astype("float32")
Y = rng.normal(size=(20, 2)).astype("float32")
BATCH = 4  # 5 steps per epoch


class Counter(keras.layers.Layer):
    """Counts its training calls in an integer weight."""

    def build(self, input_shape):
        self.calls = self.add_weight(
            shape=(), dtype="int32", initializer="zeros", trainable=False
        )

    def call(self, x, training=False):
        if training:
            self.calls.assign(self.calls + 1)
        return x


def make_model(dropout=0.0, steps_per_execution=1, dtype="float32"):
    layers = [
        keras.Input((3,)),
        keras.layers.Dense(4, dtype=dtype),
        keras.layers.BatchNormalization(dtype=dtype),
        keras.layers.Dense(2, dtype=dtype),
    ]
    if dropout:
        layers += [keras.layers.Dropout(dropout, seed=0), Counter()]
    model = keras.Sequential(layers)
    draw = np.random.default_rng(1)
    for variable in model.trainable_weights:
        variable.assign(draw.normal(size=variable.shape))
    model.compile(
        keras.optimizers.SGD(0.1, momentum=0.9),
        "mse",
        steps_per_execution=steps_per_execution,
    )
    return model


def fit(model, *callbacks, epochs=3):
    return model.fit(
        X,
        Y,
        batch_size=BATCH,
        epochs=epochs,
        shuffle=False,
        callbacks=list(callbacks),
        verbose=0,
    )


def floats(model):
    return [
        keras.ops.convert_to_numpy(v.value).copy()
        for v in model.weights
        if "float" in keras.backend.standardize_dtype(v.dtype)
    ]


@functools.cache
def manual_loop(epochs=3):
    """Weights after every step, without callbacks; entry 0 is the start."""
    model = make_model()
    path = [floats(model)]
    for _ in range(epochs):
        for start in range(0, len(X), BATCH):
            rows = slice(start, start + BATCH)
            model.train_on_batch(X[rows], Y[rows])
            path.append(floats(model))
    return path


def mean(path, steps):
    taken = [path[step] for step in steps]
    return [
        np.mean(np.stack(arrays), axis=0, dtype="float64")
        for arrays in zip(*taken, strict=True)
    ]


def assert_close(found, expected, **tolerance):
    tolerance = tolerance or {"rtol": 1e-5, "atol": 1e-6}
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.every_backend
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(
    "every, last, steps",
    [
        ("epoch", 2, [10, 15]),
        ("epoch", 5, [5, 10, 15]),
        (1, 3, [13, 14, 15]),
        (4, 2, [8, 12]),
        (7, 5, [7, 14]),
    ],
)
def test_equals_the_mean_of_a_manual_loop(
    every, last, steps, on_disk, tmp_path
):
    path = manual_loop()
    model = make_model()
    directory = tmp_path / "made" / "here" if on_disk else None
    average = CheckpointAverage(last, every, directory)
    fit(model, average)

    assert average.steps == steps
    assert_close(floats(model), mean(path, steps))
    # The average differs from the last weights.
    assert np.abs(floats(model)[0] - path[-1][0]).max() > 1e-3
    average.restore()
    assert_close(floats(model), path[-1])
    if on_disk:
        names = [f"step-{step:08d}.weights.h5" for step in steps]
        assert sorted(os.listdir(directory)) == names
        assert average.paths == [str(directory / name) for name in names]
    else:
        assert average.paths == []


class Record(keras.callbacks.Callback):
    """Records the weights after each step; entry 0 is the start."""

    def on_train_begin(self, logs=None):
        self.path = [floats(self.model)]

    def on_train_batch_end(self, batch, logs=None):
        self.path.append(floats(self.model))


def others(model):
    """Values that must not be averaged: seeds, counters, optimizer."""
    averaged = {id(v) for v in model.trainable_weights}
    variables = [
        v
        for v in [*model.variables, *model.optimizer.variables]
        if id(v) not in averaged
        and not ("moving" in v.path or v.path.startswith("loss"))
    ]
    assert any("seed" in v.path for v in variables)
    assert any(v.path.endswith("iteration") for v in variables)
    assert any("int" in str(v.dtype) and "counter" in v.path for v in variables)
    return [keras.ops.convert_to_numpy(v.value).copy() for v in variables]


@pytest.mark.parametrize("on_disk", [False, True])
def test_seeds_counters_and_optimizer_are_unchanged(on_disk, tmp_path):
    model = make_model(dropout=0.5)
    record = Record()
    # Not at the last step: reading the files would rewind the rest.
    average = CheckpointAverage(2, 4, tmp_path if on_disk else None)

    class Before(keras.callbacks.Callback):
        def on_train_end(self, logs=None):
            self.state = others(self.model)

    before = Before()
    fit(model, record, before, average)
    assert_close(floats(model), mean(record.path, [8, 12]), rtol=1e-6)
    for a, b in zip(others(model), before.state, strict=True):
        np.testing.assert_array_equal(a, b)


def test_training_continues_after_restore():
    """Two fits with averaging equal one long fit without."""
    model = make_model()
    first = CheckpointAverage(2)
    fit(model, first, epochs=1)
    first.restore()
    second = CheckpointAverage(2, save_freq=3)
    fit(model, second, epochs=2)
    assert second.steps == [12, 15]
    path = manual_loop()
    assert_close(floats(model), mean(path, [12, 15]))
    second.restore()
    assert_close(floats(model), path[-1])


def test_second_fit_starts_with_no_checkpoints(tmp_path):
    model = make_model()
    average = CheckpointAverage(3, directory=tmp_path)
    fit(model, average, epochs=1)
    fit(model, average, epochs=2)
    assert average.steps == [10, 15]
    # The file of the first fit is neither averaged nor removed.
    assert len(os.listdir(tmp_path)) == 3


def test_apply_twice_keeps_the_trained_weights():
    model = make_model()
    average = CheckpointAverage(2)
    fit(model, average)
    averaged = floats(model)
    average.apply()
    assert_close(floats(model), averaged, rtol=0)
    average.restore()
    assert_close(floats(model), manual_loop()[-1])
    other = make_model()
    average.apply(other)
    assert_close(floats(other), averaged, rtol=0)
    average.restore(other)
    assert_close(floats(other), floats(make_model()), rtol=0)


@pytest.mark.skipif(
    keras.backend.backend() == "torch",
    reason="Keras refuses steps_per_execution > 1 on PyTorch",
)
@pytest.mark.parametrize(
    "every, steps",
    # Executions end at steps 2, 4, 5 and 7, 9, 10: the third of an epoch is
    # shorter.
    [(5, [5, 10]), (3, [4, 7, 9]), (6, [7])],
)
def test_several_steps_per_execution(every, steps):
    model = make_model(steps_per_execution=2)
    average = CheckpointAverage(9, every)
    fit(model, average, epochs=2)
    assert average.steps == steps
    assert_close(floats(model), mean(manual_loop(), steps))


def test_counts_optimizer_steps_under_gradient_accumulation():
    model = make_model()
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    model.compile(optimizer, "mse")
    average = CheckpointAverage(9, save_freq=3)
    fit(model, average)
    assert average.steps == [3, 6]


def test_average_with_validation_sums_in_float64():
    model = make_model(dtype="bfloat16")
    average = CheckpointAverage(3)
    record = Record()
    model.fit(
        X,
        Y,
        validation_data=(X, Y),
        batch_size=len(X),
        epochs=3,
        callbacks=[record, average],
        verbose=0,
    )
    for found, *arrays in zip(floats(model), *record.path[1:], strict=True):
        exact = sum(a.astype("float64") for a in arrays) / 3
        rounded = keras.ops.cast(exact, "bfloat16")
        np.testing.assert_array_equal(
            found.astype("float32"),
            keras.ops.convert_to_numpy(rounded).astype("float32"),
        )


def test_average_weights_of_files(tmp_path):
    path = manual_loop()
    model = make_model(dropout=0.5)
    bare = make_model()
    paths = []
    for step in (3, 5, 14):
        for variable, value in zip(bare.weights, path[step], strict=True):
            variable.assign(value)
        paths.append(tmp_path / f"{step}.weights.h5")
        bare.save_weights(paths[-1])
    CheckpointAverage.average_weights(bare, paths)
    assert_close(floats(bare), mean(path, [3, 5, 14]))

    before = floats(model)
    with pytest.raises(ValueError):
        CheckpointAverage.average_weights(model, paths)
    assert_close(floats(model), before, rtol=0)
    with pytest.raises(ValueError, match="`paths` must name"):
        CheckpointAverage.average_weights(bare, [])


def test_average_weights_of_an_uncompiled_model(tmp_path):
    model = make_model()
    average = CheckpointAverage(2, directory=tmp_path)
    fit(model, average)
    bare = keras.Sequential.from_config(model.get_config())
    CheckpointAverage.average_weights(bare, average.paths)
    assert_close(floats(bare), floats(model), rtol=1e-6)


def test_failed_checkpoint_leaves_no_file(tmp_path, monkeypatch):
    model = make_model()
    average = CheckpointAverage(2, directory=tmp_path)

    def cut_short(path):
        with open(path, "w") as file:
            file.write("half a file")
        raise OSError("disk full")

    monkeypatch.setattr(model, "save_weights", cut_short)
    with pytest.raises(OSError, match="disk full"):
        fit(model, average)
    assert os.listdir(tmp_path) == []


def test_fit_without_checkpoint_warns():
    model = make_model()
    average = CheckpointAverage(save_freq=1000)
    with pytest.warns(UserWarning, match="before the first checkpoint"):
        fit(model, average)
    assert_close(floats(model), manual_loop()[-1])
    with pytest.raises(ValueError, match="`apply` needs"):
        average.apply()
    with pytest.raises(ValueError, match="`restore` needs"):
        average.restore()


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_checkpoints": 0}, "num_checkpoints"),
        ({"num_checkpoints": 2.0}, "num_checkpoints"),
        ({"save_freq": 0}, "save_freq"),
        ({"save_freq": "step"}, "save_freq"),
        ({"save_freq": True}, "save_freq"),
    ],
)
def test_invalid_arguments_raise(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        CheckpointAverage(**arguments)


@pytest.mark.one_backend
def test_invalid_files_and_paths_raise(tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    damaged = tmp_path / "a.weights.h5"
    damaged.write_bytes(b"damaged")
    other = tmp_path / "b.weights.h5"
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save_weights(
        other
    )
    missing = tmp_path / "c.weights.h5"
    before = model.get_weights()
    for path in (damaged, other, missing, tmp_path / "d.txt"):
        with pytest.raises(ValueError, match="`paths` must name") as info:
            CheckpointAverage.average_weights(model, [path])
        assert str(path) in str(info.value) and "\n" not in str(info.value)
    for paths in (None, str(damaged), [1], [None], []):
        with pytest.raises(ValueError, match="`paths` must"):
            CheckpointAverage.average_weights(model, paths)
    with pytest.raises(ValueError, match="`model` must be a Keras model"):
        CheckpointAverage.average_weights(None, [other])
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.one_backend
def test_invalid_states_and_directories_raise():
    for state in (None, {}, {"steps": []}):
        with pytest.raises(ValueError, match="`state` must be a dict"):
            CheckpointAverage().set_state(state)
    for directory in (1, b"x", ["a"], ""):
        with pytest.raises(ValueError, match="`directory` must be a path"):
            CheckpointAverage(directory=directory)


class Losses(keras.callbacks.Callback):
    """Records the weights and the validation loss of each epoch."""

    def on_train_begin(self, logs=None):
        self.weights, self.losses = [], []

    def on_epoch_end(self, epoch, logs=None):
        self.weights.append(floats(self.model))
        self.losses.append(logs["val_loss"])


def with_weights(weights):
    model = make_model()
    variables = [
        v
        for v in model.weights
        if "float" in keras.backend.standardize_dtype(v.dtype)
    ]
    for variable, value in zip(variables, weights, strict=True):
        variable.assign(value)
    return model


def mean_of(steps):
    arrays = [manual_loop(4)[step] for step in steps]
    return [np.mean(values, axis=0) for values in zip(*arrays, strict=True)]


def validated_fit(average, labels):
    model = make_model()
    losses = Losses()
    model.fit(
        X,
        Y,
        batch_size=BATCH,
        epochs=4,
        shuffle=False,
        validation_data=(X, labels),
        callbacks=[average, losses],
        verbose=0,
    )
    return model, losses


@pytest.mark.parametrize("save_freq", ["epoch", 2])
def test_validation_uses_the_average_and_keeps_the_best(save_freq):
    if save_freq == "epoch":
        ends = [[5], [5, 10], [10, 15], [15, 20]]
    else:
        ends = [[2, 4], [8, 10], [12, 14], [18, 20]]
    means = [mean_of(steps) for steps in ends]
    best = 1
    # The average after the second epoch has a loss of zero.
    labels = with_weights(means[best]).predict(X, verbose=0)
    average = CheckpointAverage(2, save_freq=save_freq, validate=True)
    model, losses = validated_fit(average, labels)
    expected = [
        with_weights(mean).evaluate(X, labels, verbose=0) for mean in means
    ]
    np.testing.assert_allclose(losses.losses, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(average.best_loss, 0.0, atol=1e-6)
    for found, mean in zip(floats(model), means[best], strict=True):
        np.testing.assert_allclose(found, mean, rtol=1e-4, atol=1e-6)
    # Between the validations the training goes on from its own weights.
    path = manual_loop(4)
    for weights, step in zip(losses.weights, (5, 10, 15, 20), strict=True):
        for found, value in zip(weights, path[step], strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-6)
    average.restore()
    for found, value in zip(floats(model), path[20], strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-6)


def test_best_average_is_part_of_the_state():
    whole = CheckpointAverage(2, validate=True)
    model, _ = validated_fit(whole, Y)
    state = whole.get_state()
    other = CheckpointAverage(2, validate=True)
    other.set_model(make_model())
    other.on_train_begin()
    other.set_state(state)
    assert other.best_loss == whole.best_loss
    other.apply()
    for found, value in zip(floats(other.model), floats(model), strict=True):
        np.testing.assert_allclose(found, value)


def test_validate_needs_checkpoints_in_memory(tmp_path):
    with pytest.raises(ValueError, match="`validate` needs"):
        CheckpointAverage(directory=tmp_path, validate=True)
    with pytest.raises(ValueError, match="`validate` must be"):
        CheckpointAverage(validate=1)
