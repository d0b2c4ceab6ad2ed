"""`Reinforce`: added loss, baseline and argument checks."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import Reinforce
from tests.helpers.contract import attach_mask, check_layer
from tests.helpers.ops_cases import assert_close, normal, values

pytestmark = pytest.mark.every_backend

PREDICTION = normal(3, 4, 2, seed=1)
TARGET = normal(3, 4, 2, seed=2)
LOG_PROBABILITY = -np.abs(normal(3, 4, seed=3))
SQUARES = ((PREDICTION - TARGET) ** 2).mean(-1)


def added(layer, *args, **kwargs):
    """Returns the loss that a training call adds."""
    layer(*args, training=True, **kwargs)
    (loss,) = layer.losses
    return float(values(loss))


def expected(losses, baseline=0.0):
    return ((losses - baseline) * LOG_PROBABILITY.sum(1)).mean()


@pytest.mark.parametrize(
    "loss",
    [
        "mse",
        keras.losses.MeanSquaredError(),
        keras.losses.mean_squared_error,
    ],
)
def test_adds_the_surrogate_and_moves_the_baseline(loss):
    layer = Reinforce(loss, momentum=0.75)
    args = PREDICTION, TARGET, LOG_PROBABILITY
    losses = SQUARES.mean(1)
    assert_close(added(layer, *args), expected(losses))
    assert_close(values(layer.baseline), 0.25 * losses.mean())
    first = 0.25 * losses.mean()
    assert_close(added(layer, *args), expected(losses, first))
    assert_close(values(layer.baseline), 0.75 * first + 0.25 * losses.mean())


def test_inference_adds_no_loss():
    layer = Reinforce("mse")
    output = layer(PREDICTION, TARGET, LOG_PROBABILITY)
    np.testing.assert_array_equal(values(output), PREDICTION)
    assert layer.losses == []
    assert values(layer.baseline) == 0


@pytest.mark.parametrize("rank", [1, 2])
def test_sample_weights(rank):
    weight = np.abs(normal(3, 4, seed=5))
    weight = weight if rank == 2 else weight[:, 0]
    args = PREDICTION, TARGET, LOG_PROBABILITY
    losses = SQUARES * (weight if rank == 2 else weight[:, None])
    actual = added(Reinforce("mse"), *args, sample_weight=weight)
    assert_close(actual, expected(losses.mean(1)))


def test_masked_losses_are_ignored():
    """As in the loss of `compile`, the mean is over unmasked losses."""
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]], "bool")
    prediction = np.where(mask[..., None], PREDICTION, 1e3)
    prediction = ops.convert_to_tensor(prediction.astype("float32"))
    prediction = attach_mask(prediction, mask)
    layer = Reinforce("mse", momentum=0.0)
    actual = added(layer, prediction, TARGET, LOG_PROBABILITY)
    losses = 3 * (SQUARES * mask).sum(1) / mask.sum()
    np.testing.assert_allclose(actual, expected(losses), rtol=1e-4)
    whole = keras.losses.MeanSquaredError()(TARGET, prediction)
    np.testing.assert_allclose(values(layer.baseline), values(whole), rtol=1e-5)


def test_integer_labels():
    logits = normal(3, 5, seed=6)
    labels = np.int32([1, 0, 4])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    actual = added(Reinforce(loss), logits, labels, LOG_PROBABILITY)
    exponentials = np.exp(logits)
    probability = (exponentials / exponentials.sum(1, keepdims=True))[
        [0, 1, 2], labels
    ]
    assert_close(actual, expected(-np.log(probability)))


def test_contract():
    check_layer(
        lambda **kwargs: Reinforce("mse", momentum=0.5, **kwargs),
        (PREDICTION, TARGET, LOG_PROBABILITY),
        mixed_dtype="float32",
        trains=False,
    )


def test_config_contains_every_argument():
    config = Reinforce("mae", momentum=0.5).get_config()
    copy = Reinforce.from_config(config)
    assert copy.momentum == 0.5
    assert copy.loss is keras.losses.get("mae")
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    copy = Reinforce.from_config(Reinforce(loss).get_config())
    assert copy.loss.get_config() == loss.get_config()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Reinforce("mse", momentum=1), "`momentum` must lie in"),
        (lambda: Reinforce(None), "`loss` must be a name, a function"),
        (
            lambda: Reinforce("mse")(PREDICTION, TARGET[:2], LOG_PROBABILITY),
            "the same batch axis",
        ),
        (
            lambda: Reinforce("mse")(
                PREDICTION[:, 0, 0],
                TARGET[:, 0, 0],
                LOG_PROBABILITY,
                training=True,
            ),
            "`loss` must keep the batch axis",
        ),
    ],
)
def test_invalid_inputs_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
