"""Dropout: its shares, its independence, its gradient, and whose seeds."""

import keras
import numpy as np
import pytest

from keras_attn.layers import Dropout
from tests.gradients import gradient

SHAPE = (64, 32, 32)
ONES = np.ones(SHAPE, "float32")


def kept(layer, x=ONES):
    y = layer(keras.ops.convert_to_tensor(x), training=True)
    return keras.ops.convert_to_numpy(y) != 0


def spread(rate, count):
    """Five standard deviations of a share of `count` independent draws."""
    return 5 * np.sqrt(rate * (1 - rate) / count)


@pytest.mark.parametrize("seed", [None, 0, 1234567])
@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.25, 0.5, 0.999])
def test_the_share_that_is_dropped(rate, seed):
    keras.utils.set_random_seed(7)
    layer = Dropout(rate, seed=seed)
    share = 1 - np.mean([kept(layer) for _ in range(4)])
    assert abs(share - rate) < spread(rate, 4 * ONES.size) + 2**-17


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_expectation_is_the_input(rate):
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
    # Shifted copies of one stream would be seen between two calls.
    pairs += [(flat[:-1], two.ravel()[1:]), (flat[1:], two.ravel()[:-1])]
    for left, right in pairs:
        both = np.mean(~left & ~right)
        assert abs(both - rate**2) < spread(rate**2, left.size) + 2**-16


def test_rows_and_columns_are_all_alike():
    """A hash of the index must not show the index."""
    keras.utils.set_random_seed(3)
    layer = Dropout(0.1)
    share = 1 - np.mean([kept(layer) for _ in range(20)], axis=0)
    for axes in ((0, 1), (0, 2), (1, 2)):
        means = share.mean(axis=axes)
        count = 20 * ONES.size / means.size
        # Chi-square over n - 1 degrees of freedom, five deviations.
        spread_ = np.sum((means - 0.1) ** 2) / (0.09 / count)
        freedom = means.size
        assert abs(spread_ - freedom) < 5 * np.sqrt(2 * freedom)


def test_a_seed_repeats_and_another_does_not():
    same = [kept(Dropout(0.5, seed=seed)) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(same[0], same[1])
    assert np.mean(same[0] != same[2]) > 0.4


def test_the_global_seed_repeats():
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
def test_the_dtype_stays(dtype):
    x = keras.ops.ones((8, 8), dtype)
    y = Dropout(0.5, seed=0, dtype=dtype)(x, training=True)
    assert keras.backend.standardize_dtype(y.dtype) == dtype


def test_the_gradient_is_the_mask():
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


def test_nan_is_dropped_too():
    x = np.where(np.arange(4096) % 2, np.nan, 1.0).astype("float32")
    y = Dropout(0.5, seed=0)(keras.ops.convert_to_tensor(x), training=True)
    share = np.mean(keras.ops.convert_to_numpy(y)[1::2] == 0)
    assert 0.4 < share < 0.6


@pytest.mark.parametrize("arguments", [{"rate": 0.0}, {"rate": 0.5}])
def test_nothing_happens_outside_training(arguments):
    x = keras.ops.convert_to_tensor(ONES)
    y = Dropout(**arguments)(x, training=False)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(y), ONES)


def test_the_ends_of_the_range():
    assert not kept(Dropout(1.0)).any()
    assert kept(Dropout(0.0)).all()


def test_a_shared_mask_is_keras_s_own():
    y = kept(Dropout(0.5, noise_shape=(None, 1, None), seed=0))
    assert np.all(y == y[:, :1])


def test_each_step_of_fit_drops_others():
    """Compiled, the seed moves on all the same."""
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


def test_the_config_round_trips():
    layer = Dropout(0.3, seed=4, name="rest")
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert type(again) is Dropout
    assert again.get_config() == layer.get_config()


def test_a_bad_rate_is_refused():
    with pytest.raises(ValueError, match="rate"):
        Dropout(1.5)
