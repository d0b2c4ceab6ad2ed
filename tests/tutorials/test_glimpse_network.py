"""The glimpse network and its training against NumPy and enumeration."""

import math

import keras
import numpy as np
import pytest
from glimpse_learner import GlimpseLearner, still_to_win
from glimpse_network import GlimpseNetwork

from tests.helpers import reference
from tests.helpers.gradients import gradient

SIDE = 12
IMAGES = np.random.default_rng(0).random((4, SIDE, SIDE, 1), "float32")
LABELS = np.array([2, 0, 1, 1], "int32")


def network(**changed):
    """Returns a small network with nonzero moves."""
    keras.utils.set_random_seed(5)
    arguments = {
        "classes": 3,
        "glimpses": 3,
        "patch_size": 4,
        "num_patches": 2,
        "width": 8,
        "seed": 7,
        **changed,
    }
    model = GlimpseNetwork(**arguments)
    model.build(IMAGES.shape)
    generator = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(scale=0.4, size=weight.shape))
    return model


def numbers(nest):
    return {k: keras.ops.convert_to_numpy(v) for k, v in nest.items()}


def by_hand(model, steps):
    """Computes glimpses at the mean locations in NumPy, float64."""
    w = {
        "/".join(weight.path.split("/")[-2:]): np.float64(
            keras.ops.convert_to_numpy(weight)
        )
        for weight in model.trainable_weights
    }

    def dense(name, x):
        return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    width = 8
    h, location = np.zeros((len(IMAGES), width)), np.zeros((len(IMAGES), 2))
    logits, locations, baseline = [], [], []
    for _ in range(steps):
        seen = reference.glimpse(IMAGES, location, 4, 2)
        seen = seen * np.array([1, 2])[:, None, None, None]
        seen = seen.reshape(len(IMAGES), -1)
        what = dense("what", np.maximum(dense("patches", seen), 0))
        where = dense("where", np.maximum(dense("place", location), 0))
        g = np.maximum(what + where, 0)
        bias, again = w["core/bias"]
        z, r, c = np.split(g @ w["core/kernel"] + bias, 3, axis=-1)
        zh, rh, ch = np.split(
            h @ w["core/recurrent_kernel"] + again, 3, axis=-1
        )
        z, r = sigmoid(z + zh), sigmoid(r + rh)
        h = z * h + (1 - z) * np.tanh(c + r * ch)
        logits.append(dense("guess", h))
        locations.append(location)
        baseline.append(dense("baseline", h)[:, 0])
        move = np.tanh(dense("move", np.concatenate([h, seen], -1)))
        location = np.clip(location + move, -1, 1)
    return (
        np.stack(logits, 1),
        np.stack(locations, 1),
        np.stack(baseline[:-1], 1),
    )


def test_matches_the_equations():
    model = network()
    found = numbers(model(IMAGES))
    logits, locations, baseline = by_hand(model, 3)
    assert np.ptp(locations[:, 1], axis=0).min() > 0.05
    np.testing.assert_allclose(found["places"], locations, atol=1e-5)
    np.testing.assert_allclose(found["logits"], logits, atol=1e-4)
    np.testing.assert_allclose(found["baseline"], baseline, atol=1e-4)
    np.testing.assert_array_equal(found["log_probability"], np.zeros((4, 2)))


def test_locations_are_drawn_around_the_mean():
    model = network(glimpses=2, deviation=0.05)
    many = np.repeat(IMAGES[:1], 4000, axis=0)
    model.move.kernel.assign(0.3 * model.move.kernel)
    mean = numbers(model(IMAGES[:1]))["places"][0, 1]
    # Five standard deviations from the edge: nothing is clipped.
    assert (np.abs(mean) < 0.75).all()
    seen = numbers(model(many, training=True))
    away = (seen["places"][:, 1] - mean) / 0.05
    assert (np.abs(away.mean(0)) < 5 / math.sqrt(4000)).all()
    assert (np.abs(away.std(0) - 1) < 5 / math.sqrt(8000)).all()
    np.testing.assert_allclose(
        seen["log_probability"][:, 0], -(away**2).sum(-1) / 2, atol=1e-3
    )
    again = numbers(model(many, training=True))
    assert (again["places"][:, 1] != seen["places"][:, 1]).any()


def test_random_locations_cover_the_whole_canvas():
    model = network(random_places=True)
    many = np.repeat(IMAGES[:1], 2000, axis=0)
    for training in (False, True):
        locations = numbers(model(many, training=training))["places"]
        assert (locations[:, 0] == 0).all()
        # Uniform from -1 to 1: mean 0, variance 1 / 3.
        drawn = locations[:, 1:].reshape(-1, 2)
        error = 5 / math.sqrt(3 * len(drawn))
        assert (np.abs(drawn.mean(0)) < error).all()
        assert (np.abs(drawn.var(0) - 1 / 3) < error).all()
        assert np.abs(drawn).max() <= 1


def test_pixels_outside_the_patches_have_no_effect():
    """A small patch in the center; all other pixels change."""
    model = network(glimpses=1)
    other = np.random.default_rng(9).random(IMAGES.shape, "float32")
    other[:, 2:10, 2:10] = IMAGES[:, 2:10, 2:10]
    before, after = numbers(model(IMAGES)), numbers(model(other))
    np.testing.assert_array_equal(before["logits"], after["logits"])
    other[:, 2, 2] += 0.5
    after = numbers(model(other))
    assert (before["logits"] != after["logits"]).any(axis=-1).all()


def test_returns_to_go():
    rewards = np.float32([[9, 1, 2, 4], [5, 0, 0, 1]])
    found = keras.ops.convert_to_numpy(still_to_win(rewards))
    np.testing.assert_allclose(found, np.array([[7, 6, 4], [1, 1, 1]]) / 3)


def test_loss_matches_the_equation():
    model = network()
    learner = GlimpseLearner(model, weight=0.3)
    generator = np.random.default_rng(2)
    seen = {
        "logits": generator.normal(size=(4, 3, 3)).astype("float32"),
        "log_probability": generator.normal(size=(4, 2)).astype("float32"),
        "baseline": generator.normal(size=(4, 2)).astype("float32"),
    }
    powers = np.exp(seen["logits"].astype("float64"))
    chances = powers / powers.sum(-1, keepdims=True)
    expected = 0
    for i, label in enumerate(LABELS):
        p = chances[i, :, label]
        expected -= np.log(p).mean() / 4
        for t in range(2):
            surprise = p[t + 1 :].sum() / 2 - float(seen["baseline"][i, t])
            chosen = surprise * float(seen["log_probability"][i, t])
            expected += (surprise**2 - 0.3 * chosen) / 4
    seen = {k: keras.ops.convert_to_tensor(x) for k, x in seen.items()}
    found = float(learner.loss_of(seen, LABELS))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    # Without a choice, there is no location loss.
    blind = GlimpseLearner(network(random_places=True), weight=0.3)
    np.testing.assert_allclose(
        float(blind.loss_of(seen, LABELS)),
        -np.log(chances[np.arange(4), :, LABELS]).mean(),
        rtol=1e-4,
    )


def place_gradients(model, baseline, batches=12, size=2000):
    """Estimates the gradient of the loss at the move's bias, (batches, 2)."""
    model.baseline.kernel.assign(0 * model.baseline.kernel)
    model.baseline.bias.assign([baseline])
    learner = GlimpseLearner(model, weight=1.0)
    images = np.repeat(IMAGES[:1], size, axis=0)
    labels = np.repeat(LABELS[:1], size)

    def loss(values):
        with keras.StatelessScope([(model.move.bias, values)]):
            seen = model(images, training=True)
            return learner.loss_of(seen, labels)

    bias = keras.ops.convert_to_numpy(model.move.bias)
    found = []
    for batch in range(batches):
        # In a stateless scope the seed generator would not advance.
        model.seeds.state.assign(np.array([batch, 3], "uint32"))
        found.append(gradient(loss, bias)[0])
    return np.array(found)


def test_reinforce_estimates_the_exact_gradient(monkeypatch):
    """Gradient of the expected reward of a second glimpse, over a grid."""
    model = network(glimpses=2, deviation=0.2)
    mean = numbers(model(IMAGES[:1]))["places"][0, 1].astype("float64")
    line = np.linspace(-1, 1, 81) * 5 * 0.2
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    with monkeypatch.context() as context:
        locations = keras.ops.convert_to_tensor(np.float32(mean + grid))
        context.setattr(model, "draw", lambda *_: locations)
        seen = numbers(model(np.repeat(IMAGES[:1], len(grid), axis=0)))
    powers = np.exp(seen["logits"][:, 1].astype("float64"))
    rewards = powers[:, LABELS[0]] / powers.sum(-1)

    def expected_reward(shift):
        density = np.exp(-((grid - shift) ** 2).sum(-1) / (2 * 0.2**2))
        return density @ rewards / density.sum()

    tiny = 1e-3 * np.eye(2)
    exact = [
        (expected_reward(step) - expected_reward(-step)) / 2e-3 for step in tiny
    ]
    # m = l + tanh(... + bias), l = 0; the sign is that of a loss.
    exact = -np.array(exact) * (1 - mean**2)
    spread = {}
    for baseline in (0.0, expected_reward(0)):
        found = place_gradients(model, baseline)
        error = found.std(0, ddof=1) / math.sqrt(len(found))
        assert (np.abs(found.mean(0) - exact) < 5 * error + 1e-3).all()
        spread[baseline] = found.std(0).sum()
    assert np.abs(exact).max() > 0.01
    assert spread[expected_reward(0)] < 0.7 * spread[0.0]


def test_moves_get_gradients_from_reinforce_only():
    """Without the REINFORCE term the weights of the move have no gradient."""
    model = network()
    kernel = keras.ops.convert_to_numpy(model.move.kernel)
    at = {}
    for weight in (0.0, 0.3):
        learner = GlimpseLearner(model, weight=weight)

        def loss(values, learner=learner):
            with keras.StatelessScope([(model.move.kernel, values)]):
                seen = model(IMAGES, training=True)
                return learner.loss_of(seen, LABELS)

        (at[weight],) = gradient(loss, kernel)
    assert (at[0.0] == 0).all()
    assert (at[0.3] != 0).any()


def test_baseline_gradient_does_not_reach_the_state():
    model = network()
    kernel = keras.ops.convert_to_numpy(model.core.kernel)

    def value(values):
        with keras.StatelessScope([(model.core.kernel, values)]):
            return keras.ops.sum(model(IMAGES)["baseline"])

    (found,) = gradient(value, kernel)
    assert (found == 0).all()


def test_fit_learns_to_read():
    """The label is the bright quadrant of a small canvas."""
    images = np.zeros((64, SIDE, SIDE, 1), "float32")
    labels = np.arange(64, dtype="int32") % 3
    for image, label in zip(images, labels, strict=True):
        image[6 * (label // 2) :, 6 * (label % 2) :][:6, :6] = 1
    model = network()
    learner = GlimpseLearner(model)
    learner.build((images.shape, (None,)))
    learner.compile(keras.optimizers.Adam(0.02), metrics=["accuracy"])
    history = learner.fit(
        (images, labels), labels, batch_size=32, epochs=15, verbose=0
    ).history
    assert history["loss"][-1] < history["loss"][0]
    assert history["accuracy"][-1] > 0.9


def test_saved_network_gives_the_same_outputs(tmp_path):
    model = network()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    before, after = numbers(model(IMAGES)), numbers(loaded(IMAGES))
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name])


@pytest.mark.parametrize("glimpses", [1, 4])
def test_shapes(glimpses):
    seen = network(glimpses=glimpses)(IMAGES, training=True)
    assert {name: tuple(x.shape) for name, x in seen.items()} == {
        "logits": (4, glimpses, 3),
        "places": (4, glimpses, 2),
        "log_probability": (4, glimpses - 1),
        "baseline": (4, glimpses - 1),
    }
