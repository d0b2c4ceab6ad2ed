"""Layer-wise learning rates against separate optimizers."""

import keras
import numpy as np
import pytest

from keras_attn.models import Bert, SequenceClassifier, Transformer
from keras_attn.training import (
    LayerwiseLearningRates,
    TrainingBackup,
    freeze,
    layerwise_lr_multipliers,
)
from tests.helpers.cases import once
from tests.helpers.contract import randomize

X = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(24, 2)).astype("float32")
FACTORS = {"first/": 0.25, "/bias": 2.0}
OPTIMIZERS = {
    "sgd": lambda rate: keras.optimizers.SGD(rate, momentum=0.9, nesterov=True),
    "adam": lambda rate: keras.optimizers.Adam(rate),
    "adamw": lambda rate: keras.optimizers.AdamW(rate, weight_decay=0.1),
    "rmsprop": lambda rate: keras.optimizers.RMSprop(rate, momentum=0.5),
    "adagrad": lambda rate: keras.optimizers.Adagrad(rate),
    "lion": lambda rate: keras.optimizers.Lion(rate, weight_decay=0.1),
    "nadam": lambda rate: keras.optimizers.Nadam(rate),
    "adafactor": lambda rate: keras.optimizers.Adafactor(
        rate, relative_step=False
    ),
}


def network():
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4, activation="tanh", name="first"),
            keras.layers.Dense(4, activation="tanh", name="second"),
            keras.layers.Dense(2, name="third"),
        ],
        name="network",
    )
    return randomize(model)


def values(model):
    return {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}


def factor_of(path):
    return 0.25 if "first/" in path else 2.0 if "/bias" in path else 1.0


@pytest.mark.parametrize(
    "name",
    [
        *("sgd", "adamw"),
        *once(name for name in OPTIMIZERS if name not in ("sgd", "adamw")),
    ],
)
def test_equals_separate_runs_with_scaled_rates(name):
    """Each run trains one weight with f times the rate, the rest frozen.

    The loss is linear in the outputs and the network has a single layer, y = x
    W + b, so that gradients do not depend on the weights.
    """

    def linear():
        model = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(4, name="first")],
            name="linear",
        )
        return randomize(model)

    def loss(y_true, y_pred):
        return keras.ops.mean(y_pred * y_true, axis=-1)

    targets = np.random.default_rng(2).normal(size=(24, 4)).astype("float32")

    def trained(optimizer, only=None):
        model = linear()
        if only:
            freeze(model, f"^(?!{only}$)")
        model.compile(optimizer, loss)
        model.fit(X, targets, batch_size=8, epochs=2, shuffle=False, verbose=0)
        return values(model)

    multipliers = {"kernel": 0.25, "first/": 2.0}
    ours = trained(LayerwiseLearningRates(OPTIMIZERS[name](0.02), multipliers))
    for path, found in ours.items():
        multiplier = 0.25 if "kernel" in path else 2.0
        theirs = trained(OPTIMIZERS[name](0.02 * multiplier), only=path)
        np.testing.assert_allclose(found, theirs[path], atol=2e-6, rtol=2e-6)
        plain = trained(OPTIMIZERS[name](0.02), only=path)
        assert np.abs(found - plain[path]).max() > 1e-3


@pytest.mark.every_backend
def test_equals_manual_steps():
    model = network()
    optimizer = LayerwiseLearningRates(keras.optimizers.SGD(0.1), FACTORS)
    model.compile(optimizer, "mse")
    twin = network()
    twin.compile(keras.optimizers.SGD(0.1), "mse")
    for _ in range(3):
        before = values(twin)
        twin.train_on_batch(X, Y)
        for weight in twin.weights:
            new = keras.ops.convert_to_numpy(weight)
            old = before[weight.path]
            weight.assign(old + factor_of(weight.path) * (new - old))
        model.train_on_batch(X, Y)
    for path, found in values(model).items():
        np.testing.assert_allclose(
            found, values(twin)[path], atol=1e-6, err_msg=path
        )
    assert int(optimizer.iterations) == 3


def test_multipliers_of_one_change_nothing():
    found = []
    for wrap in (lambda o: o, lambda o: LayerwiseLearningRates(o, {"": 1.0})):
        model = network()
        schedule = keras.optimizers.schedules.CosineDecay(0.1, 6)
        inner = keras.optimizers.Adam(
            schedule, global_clipnorm=0.1, gradient_accumulation_steps=2
        )
        model.compile(wrap(inner), "mse")
        model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0)
        found.append(values(model))
    for path, value in found[0].items():
        np.testing.assert_array_equal(found[1][path], value)


def test_weights_do_not_change_while_gradients_accumulate():
    model = network()
    inner = keras.optimizers.Adam(0.1, gradient_accumulation_steps=2)
    model.compile(LayerwiseLearningRates(inner, FACTORS), "mse")
    before = values(model)
    model.train_on_batch(X, Y)
    for path, value in values(model).items():
        np.testing.assert_array_equal(value, before[path])
    model.train_on_batch(X, Y)
    assert any((values(model)[p] != before[p]).any() for p in before)


def test_learning_rate_can_be_set():
    optimizer = LayerwiseLearningRates(keras.optimizers.SGD(0.1), FACTORS)
    assert float(optimizer.learning_rate) == pytest.approx(0.1)
    optimizer.learning_rate = 0.2
    assert float(optimizer.optimizer.learning_rate) == pytest.approx(0.2)


def test_loss_scaling():
    model = network()
    model.compile(
        keras.optimizers.LossScaleOptimizer(
            LayerwiseLearningRates(keras.optimizers.SGD(0.1), FACTORS),
            initial_scale=8.0,
        ),
        "mse",
    )
    plain = network()
    plain.compile(
        LayerwiseLearningRates(keras.optimizers.SGD(0.1), FACTORS), "mse"
    )
    for one in (model, plain):
        one.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    for path, value in values(model).items():
        np.testing.assert_allclose(value, values(plain)[path], atol=1e-6)


def test_training_continues_after_saving(tmp_path):
    model = network()
    model.compile(
        LayerwiseLearningRates(keras.optimizers.AdamW(0.05), FACTORS), "mse"
    )
    model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.optimizer.multipliers == FACTORS
    assert int(again.optimizer.iterations) == 2
    for one in (model, again):
        one.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    # Keras renames the weights of a restored Sequential.
    for value, other in zip(
        values(model).values(), values(again).values(), strict=True
    ):
        np.testing.assert_allclose(other, value, atol=1e-6)


def test_config_is_independent_of_the_backend():
    optimizer = LayerwiseLearningRates(keras.optimizers.AdamW(0.05), FACTORS)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    config = optimizer.get_config()
    assert config["optimizer"]["module"] == "keras.optimizers"
    again = LayerwiseLearningRates.from_config(config)
    assert again.get_config() == config


def test_built_optimizer_raises():
    inner = keras.optimizers.SGD()
    inner.build(network().trainable_variables)
    with pytest.raises(ValueError, match="must not be built yet"):
        LayerwiseLearningRates(inner, FACTORS)


def test_training_resumes_from_a_backup(tmp_path):
    def run(folder, epochs):
        model = network()
        model.compile(
            LayerwiseLearningRates(keras.optimizers.Adam(0.05), FACTORS), "mse"
        )
        model.fit(
            X,
            Y,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=[TrainingBackup(folder)],
        )
        return values(model)

    run(tmp_path / "a", 1)
    resumed, whole = run(tmp_path / "a", 3), run(tmp_path / "b", 3)
    for path, value in whole.items():
        np.testing.assert_allclose(resumed[path], value, atol=1e-7)


def test_frozen_weights_do_not_change():
    model = network()
    freeze(model, "second")
    model.compile(
        LayerwiseLearningRates(keras.optimizers.Adam(0.1), FACTORS), "mse"
    )
    before = values(model)
    model.fit(X, Y, verbose=0)
    for path, value in values(model).items():
        assert np.array_equal(value, before[path]) == ("second" in path)


def test_multipliers_of_blocks():
    encoder = Bert(11, 3, 2, 8, 12, max_sequence_length=8)
    model = SequenceClassifier(encoder, 2)
    optimizer = LayerwiseLearningRates(
        keras.optimizers.Adam(), layerwise_lr_multipliers(model, 0.5)
    )
    expected = {
        "token_embedding/table/embeddings": 0.0625,
        "positions/table/embeddings": 0.0625,
        "embedding_norm/gamma": 0.0625,
        "block_0/feed_forward/inner/kernel": 0.125,
        "block_2/self_attention/query/kernel": 0.5,
        "pooler/kernel": 1.0,
        "output/kernel": 1.0,
    }
    paths = {weight.path for weight in model.weights}
    for path, multiplier in expected.items():
        assert path in paths and optimizer.multiplier(path) == multiplier


def test_multipliers_of_two_stacks():
    model = Transformer(9, num_layers=2, num_heads=1, hidden_dim=4)
    optimizer = LayerwiseLearningRates(
        keras.optimizers.Adam(), layerwise_lr_multipliers(model, 0.5)
    )
    for stack in ("encoder_block", "decoder_block"):
        for index, multiplier in ((0, 0.25), (1, 0.5)):
            path = f"{stack}_{index}/feed_forward/inner/kernel"
            assert optimizer.multiplier(path) == multiplier


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("adam", FACTORS), "`optimizer` must be a Keras optimizer"),
        ((keras.optimizers.Ftrl(), FACTORS), "proportional to its rate"),
        ((keras.optimizers.SGD(use_ema=True), FACTORS), "no moving average"),
        ((keras.optimizers.SGD(), {}), "`multipliers` must be a dict"),
        ((keras.optimizers.SGD(), {"a": 0}), "must be numbers above 0"),
        ((keras.optimizers.SGD(), {"a": "1"}), "must be numbers above 0"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        LayerwiseLearningRates(*arguments)


def test_pattern_without_match_raises():
    model = network()
    optimizer = LayerwiseLearningRates(keras.optimizers.SGD(), {"fourth": 0.5})
    model.compile(optimizer, "mse")
    with pytest.raises(
        ValueError, match="`multipliers` must be found in a path"
    ):
        model.fit(X, Y, verbose=0)


@pytest.mark.parametrize("decay", [0, 1.5, "x", True])
def test_invalid_decay_raises(decay):
    with pytest.raises(ValueError, match="`decay` must be a number"):
        layerwise_lr_multipliers(network(), decay)


def test_model_without_blocks_raises():
    with pytest.raises(ValueError, match="must have numbered blocks"):
        layerwise_lr_multipliers(network(), 0.5)


@pytest.mark.one_backend
@pytest.mark.parametrize("pattern", [1, None, "("])
def test_patterns_that_are_no_regular_expressions_raise(pattern):
    optimizer = keras.optimizers.SGD()
    with pytest.raises(ValueError, match="`multipliers` must be a"):
        LayerwiseLearningRates(optimizer, {pattern: 1.0})
