"""Dropout: rate, independence, gradient and seeds."""

import keras
import numpy as np
import pytest

from keras_attn.layers import Dropout
from tests.helpers.gradients import gradient

pytestmark = pytest.mark.every_backend

SHAPE = (64, 32, 32)
ONES = np.ones(SHAPE, "float32")


def kept(layer, x=ONES):
    y = layer(keras.ops.convert_to_tensor(x), training=True)
    return keras.ops.convert_to_numpy(y) != 0


def spread(rate, count):
    """Five standard deviations of the rate of `count` independent draws."""
    return 5 * np.sqrt(rate * (1 - rate) / count)


@pytest.mark.parametrize("seed", [None, 0, 1234567])
@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.25, 0.5, 0.999])
def test_dropped_fraction_equals_the_rate(rate, seed):
    keras.utils.set_random_seed(7)
    layer = Dropout(rate, seed=seed)
    dropped = 1 - np.mean([kept(layer) for _ in range(4)])
    assert abs(dropped - rate) < spread(rate, 4 * ONES.size) + 2**-17


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_expectation_equals_the_input(rate):
    keras.utils.set_random_seed(1)
    layer = Dropout(rate)
    y = keras.ops.convert_to_numpy(
        layer(keras.ops.convert_to_tensor(ONES), training=True)
    )
    values = np.unique(y)
    assert len(values) == 2 and values[0] == 0
    np.testing.assert_allclose(values[1], 1 / (1 - rate), rtol=2e-5)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_elements_calls_and_layers_are_independent(rate, seed):
    keras.utils.set_random_seed(2)
    first, second = Dropout(rate, seed=seed), Dropout(rate, seed=4)
    one, two, other = kept(first), kept(first), kept(second)
    flat = one.ravel()
    pairs = [
        (flat[:-lag], flat[lag:]) for lag in (1, 2, 3, 4, 8, 32, 256, 1024)
    ]
    pairs += [(flat, two.ravel()), (flat, other.ravel())]
    # Two calls must not be shifted copies of one stream.
    pairs += [(flat[:-1], two.ravel()[1:]), (flat[1:], two.ravel()[:-1])]
    for left, right in pairs:
        both = np.mean(~left & ~right)
        assert abs(both - rate**2) < spread(rate**2, left.size) + 2**-16


def test_rate_is_the_same_in_all_rows_and_columns():
    """The rate does not depend on the index."""
    keras.utils.set_random_seed(3)
    layer = Dropout(0.1)
    dropped = 1 - np.mean([kept(layer) for _ in range(20)], axis=0)
    for axes in ((0, 1), (0, 2), (1, 2)):
        means = dropped.mean(axis=axes)
        count = 20 * ONES.size / means.size
        # Chi-square over n - 1 degrees of freedom, five deviations.
        statistic = np.sum((means - 0.1) ** 2) / (0.09 / count)
        freedom = means.size
        assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)


def test_mask_depends_on_the_seed():
    same = [kept(Dropout(0.5, seed=seed)) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(same[0], same[1])
    assert np.mean(same[0] != same[2]) > 0.4


def test_global_seed_is_reproducible():
    masks = []
    for _ in range(2):
        keras.utils.set_random_seed(11)
        masks.append(kept(Dropout(0.5)))
    np.testing.assert_array_equal(*masks)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (2, 3, 5, 7)])
def test_any_shape(shape):
    layer = Dropout(0.5, seed=0)
    x = np.full(shape, 3.0, "float32")
    y = keras.ops.convert_to_numpy(
        layer(keras.ops.convert_to_tensor(x), training=True)
    )
    assert y.shape == shape
    assert set(np.unique(y)) <= {0.0, 6.0}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_output_keeps_the_dtype(dtype):
    x = keras.ops.ones((8, 8), dtype)
    y = Dropout(0.5, seed=0, dtype=dtype)(x, training=True)
    assert keras.backend.standardize_dtype(y.dtype) == dtype


def test_gradient_equals_the_mask():
    x = np.random.default_rng(0).normal(size=(16, 16)).astype("float32")
    outputs = []

    def total(x):
        y = Dropout(0.25, seed=9)(x, training=True)
        outputs.append(y)
        return keras.ops.sum(y)

    (slope,) = gradient(total, x)
    again = Dropout(0.25, seed=9)(keras.ops.convert_to_tensor(x), training=True)
    factor = keras.ops.convert_to_numpy(again) / x
    np.testing.assert_allclose(slope, factor, rtol=1e-5)
    assert {0.0} < set(np.round(np.unique(slope), 4).tolist())


def test_nan_inputs_are_dropped():
    x = np.where(np.arange(4096) % 2, np.nan, 1.0).astype("float32")
    y = Dropout(0.5, seed=0)(keras.ops.convert_to_tensor(x), training=True)
    dropped = np.mean(keras.ops.convert_to_numpy(y)[1::2] == 0)
    assert 0.4 < dropped < 0.6


@pytest.mark.parametrize("arguments", [{"rate": 0.0}, {"rate": 0.5}])
def test_inference_returns_the_input(arguments):
    x = keras.ops.convert_to_tensor(ONES)
    y = Dropout(**arguments)(x, training=False)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(y), ONES)


def test_rates_zero_and_one():
    assert not kept(Dropout(1.0)).any()
    assert kept(Dropout(0.0)).all()


def test_noise_shape_shares_the_mask():
    y = kept(Dropout(0.5, noise_shape=(None, 1, None), seed=0))
    assert np.all(y == y[:, :1])


def test_each_training_step_draws_a_new_mask():
    """The seed advances in compiled training too."""
    inputs = keras.Input((512,))
    same = keras.layers.Dense(512, kernel_initializer="identity")(inputs)
    model = keras.Model(inputs, Dropout(0.5)(same))
    seen = []

    class Loss(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return keras.ops.mean(keras.ops.abs(y_pred - y_true), axis=-1)

    model.compile(keras.optimizers.SGD(0.0), Loss())
    x = np.ones((4, 512), "float32")
    target = np.random.default_rng(0).normal(size=x.shape)
    for _ in range(3):
        seen.append(model.train_on_batch(x, target))
    assert len({round(float(value), 6) for value in seen}) == 3


def test_config_round_trip():
    layer = Dropout(0.3, seed=4, name="rest")
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert type(again) is Dropout
    assert again.get_config() == layer.get_config()


def test_invalid_rate_raises():
    with pytest.raises(ValueError, match="rate"):
        Dropout(1.5)
