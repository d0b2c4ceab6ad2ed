"""WarmupSchedule against the paper's equation in float64, and in fit."""

import keras
import numpy as np
import pytest

from keras_attn.training import WarmupSchedule


def reference(steps, hidden_dim, warmup_steps, scale=1.0):
    """Vaswani et al. 2017, eq. 3, for steps counted from 1."""
    steps = np.asarray(steps, "float64")
    return (
        scale
        * hidden_dim**-0.5
        * np.minimum(steps**-0.5, steps * warmup_steps**-1.5)
    )


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "hidden_dim, warmup_steps, scale",
    [(512, 4000, 1.0), (1024, 4000, 2.0), (8, 1, 1.0), (64, 7, 0.1)],
)
def test_equals_the_paper_to_float32(hidden_dim, warmup_steps, scale):
    schedule = WarmupSchedule(hidden_dim, warmup_steps, scale)
    steps = [1, 2, 3, 10, 3999, 4000, 4001, 65_537, 999_983, 1_000_000]
    rates = [float(schedule(keras.ops.convert_to_tensor(s - 1))) for s in steps]
    expected = reference(steps, hidden_dim, warmup_steps, scale)
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


def test_result_is_float32_and_takes_python_steps():
    rate = WarmupSchedule(512)(0)
    assert keras.backend.standardize_dtype(rate.dtype) == "float32"
    np.testing.assert_allclose(float(rate), reference(1, 512, 4000), rtol=1e-6)


class Record(keras.callbacks.Callback):
    """Records the rate and the weights after each step."""

    def __init__(self):
        super().__init__()
        self.rates, self.weights = [], []

    def on_train_batch_end(self, batch, logs=None):
        rate = self.model.optimizer.learning_rate
        self.rates.append(float(keras.ops.convert_to_numpy(rate)))
        self.weights.append(self.model.get_weights()[0].copy())


def small_model(optimizer):
    model = keras.Sequential(
        [
            keras.Input((1,)),
            keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
        ]
    )
    # The gradient is always 1, so each update equals the rate.
    model.compile(optimizer, loss=lambda y, x: keras.ops.mean(x))
    return model


def test_fit_uses_the_scheduled_rates():
    schedule = WarmupSchedule(hidden_dim=16, warmup_steps=4)
    model = small_model(keras.optimizers.SGD(schedule))
    record = Record()
    ones = np.ones((10, 1), "float32")
    model.fit(ones, ones, batch_size=1, callbacks=[record], verbose=0)

    expected = reference(np.arange(1, 12), 16, 4)
    # After step s the optimizer returns the rate of step s + 1.
    np.testing.assert_allclose(record.rates, expected[1:], rtol=1e-6)
    path = np.array([0.0, *(float(w[0, 0]) for w in record.weights)])
    np.testing.assert_allclose(-np.diff(path), expected[:-1], rtol=1e-5)


def test_config_round_trips_inside_an_optimizer():
    schedule = WarmupSchedule(32, warmup_steps=11, scale=0.5)
    config = keras.optimizers.serialize(keras.optimizers.Adam(schedule))
    again = keras.optimizers.deserialize(config)._learning_rate
    assert isinstance(again, WarmupSchedule)
    assert again.get_config() == schedule.get_config()
    assert schedule.get_config() == {
        "hidden_dim": 32,
        "warmup_steps": 11,
        "scale": 0.5,
    }


def test_saved_model_continues_the_schedule(tmp_path):
    schedule = WarmupSchedule(hidden_dim=16, warmup_steps=4)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(schedule), loss="mse")
    ones = np.ones((6, 1), "float32")
    model.fit(ones, ones, batch_size=1, verbose=0)
    model.save(tmp_path / "model.keras")

    again = keras.saving.load_model(tmp_path / "model.keras")
    rate = float(keras.ops.convert_to_numpy(again.optimizer.learning_rate))
    np.testing.assert_allclose(rate, reference(7, 16, 4), rtol=1e-6)


def test_several_and_large_steps():
    schedule = WarmupSchedule(8, 10)
    steps = np.array([0, 9, 2**30])
    found = keras.ops.convert_to_numpy(schedule(steps))
    np.testing.assert_allclose(found, reference(steps + 1, 8, 10), rtol=1e-6)
    np.testing.assert_allclose(
        float(schedule(2**40)), reference(2**40 + 1, 8, 10), rtol=1e-6
    )


@pytest.mark.parametrize(
    "step",
    [
        -5,
        -1,
        np.int32(-5),
        np.array([3, -1]),
        float("nan"),
        1.5,
        True,
        1j,
        "a",
        None,
        [1, 2],
        np.float32(2),
    ],
)
def test_invalid_steps_raise(step):
    with pytest.raises(ValueError, match="`step` must") as info:
        WarmupSchedule(8)(step)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"hidden_dim": 0}, "hidden_dim"),
        ({"hidden_dim": 8.0}, "hidden_dim"),
        ({"hidden_dim": 10**400}, "hidden_dim"),
        ({"hidden_dim": 8, "warmup_steps": 2**31}, "warmup_steps"),
        ({"hidden_dim": 8, "warmup_steps": -1}, "warmup_steps"),
        ({"hidden_dim": 8, "scale": 0}, "scale"),
        ({"hidden_dim": 8, "scale": float("nan")}, "scale"),
        ({"hidden_dim": 8, "scale": "1"}, "scale"),
    ],
)
def test_invalid_arguments_raise(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        WarmupSchedule(**arguments)
