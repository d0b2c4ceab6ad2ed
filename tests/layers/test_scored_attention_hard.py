"""Hard attention: choices, probabilities and gradients."""

import importlib
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import Reinforce, ScoredAttention
from tests.helpers.contract import check_layer
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import weighted_sum
from tests.layers.attention_cases import HOLES, KEY, QUERY, VALUE, B, S, T
from tests.layers.scored_cases import make

pytestmark = pytest.mark.every_backend

# By name, because monkeypatch needs the module.
module = importlib.import_module("keras_attn.layers.scored_attention")
every_kind = pytest.mark.parametrize("hard", ["reinforce", "gumbel"])


def with_weights(layer, *args, **kwargs):
    outputs = layer(*args, return_attention_scores=True, **kwargs)
    return [values(x) for x in outputs]


@every_kind
def test_expectation_equals_soft_attention(hard):
    """With repeated queries, choices are as frequent as the soft weights."""
    count = 3000
    soft, layer = make("general"), make("general", hard=hard, seed=5)
    layer.set_weights(soft.get_weights())
    query = np.repeat(QUERY[:, :1], count, axis=1)
    masks = {"value_mask": HOLES}
    expected, probabilities = with_weights(
        soft, QUERY[:, :1], VALUE, KEY, **masks
    )
    output, weights = with_weights(
        layer, query, VALUE, KEY, training=True, **masks
    )
    assert set(weights.ravel().tolist()) == {0.0, 1.0}
    assert (weights.sum(-1) == 1).all()
    assert_close(output, weights @ VALUE, 1e-6)
    error = np.sqrt(probabilities * (1 - probabilities) / count)
    assert (
        np.abs(weights.mean(1, keepdims=True) - probabilities) <= 4 * error
    ).all()
    variance = np.einsum("bts,bsw->btw", probabilities, VALUE**2) - expected**2
    error = np.sqrt(variance / count)
    gap = np.abs(output.mean(1, keepdims=True) - expected)
    assert (gap <= 4 * error).all()


@every_kind
def test_inference_selects_the_largest_score(hard):
    soft, layer = make("general"), make("general", hard=hard)
    layer.set_weights(soft.get_weights())
    _, probabilities = with_weights(soft, QUERY, VALUE, KEY, value_mask=HOLES)
    output, weights = with_weights(layer, QUERY, VALUE, KEY, value_mask=HOLES)
    chosen = probabilities.argmax(-1)
    np.testing.assert_array_equal(weights, np.eye(S)[chosen])
    np.testing.assert_array_equal(
        output, np.take_along_axis(VALUE, chosen[..., None], 1)
    )


@every_kind
def test_choices_depend_on_the_seed(hard):
    query = np.repeat(QUERY, 20, axis=1)
    first, second, other = (
        make("general", hard=hard, seed=seed) for seed in (1, 1, 2)
    )

    def draw(layer):
        return values(layer(query, VALUE, KEY, training=True))

    drawn = draw(first)
    np.testing.assert_array_equal(drawn, draw(second))
    assert (drawn != draw(second)).any()
    assert (drawn != draw(other)).any()


@every_kind
def test_fully_masked_rows_choose_nothing(hard):
    layer = make("general", hard=hard)
    mask = HOLES & np.array([[True], [False]])
    for training in (False, True):
        output, weights = with_weights(
            layer, QUERY, VALUE, KEY, value_mask=mask, training=training
        )
        assert (output[1] == 0).all() and (weights[1] == 0).all()
        assert (weights[0] * ~mask[0] == 0).all()


def test_log_probability_of_a_choice():
    soft = make("general")
    layer = make("general", hard="reinforce", seed=1)
    layer.set_weights(soft.get_weights())
    mask = HOLES & np.array([[True], [False]])
    _, probabilities = with_weights(soft, QUERY, VALUE, KEY, value_mask=mask)
    for training in (False, True):
        _, weights, log_probability = layer(
            QUERY,
            VALUE,
            KEY,
            value_mask=mask,
            training=training,
            return_attention_scores=True,
            return_log_probability=True,
        )
        expected = np.log((probabilities * values(weights))[0].sum(-1))
        assert_close(values(log_probability)[0], expected)
        assert (values(log_probability)[1] == 0).all()


def test_gumbel_has_the_gradient_of_a_softmax(monkeypatch):
    """Compared with differentiating the softmax directly."""
    noise = normal(B, T, S, seed=8)
    monkeypatch.setattr(
        module, "gumbel_noise", lambda *_: ops.convert_to_tensor(noise)
    )
    upstream = normal(B, T, VALUE.shape[-1], seed=9)
    layer = ScoredAttention("dot", hard="gumbel", temperature=0.7)
    key = normal(B, S, QUERY.shape[-1], seed=7)

    def hard(query, key):
        return weighted_sum(layer(query, VALUE, key, training=True), upstream)

    def soft(query, key):
        scores = ops.matmul(query, ops.transpose(key, (0, 2, 1)))
        weights = ops.softmax(ops.add(scores, noise) / 0.7)
        return weighted_sum(ops.matmul(weights, VALUE), upstream)

    for one, other in zip(
        gradient(hard, QUERY, key), gradient(soft, QUERY, key), strict=True
    ):
        assert_close(one, other)


def prediction_of(attended):
    """Computes a nonlinear function of both choices of an example."""
    return ops.square(attended[:, 0]) * attended[:, 1] + ops.tanh(
        attended[:, 1]
    )


def mean_square(target, prediction):
    return ops.mean(ops.square(ops.subtract(prediction, target)), axis=-1)


def test_reinforce_is_the_gradient_of_the_expected_loss(monkeypatch):
    """Exact expectation over all 9 pairs of choices, for any baseline."""
    queries, keys, width = 2, 3, 4
    query = normal(B, queries, width, seed=1)
    key = 0.7 * normal(B, keys, width, seed=2)
    value = normal(B, keys, 2, seed=3)
    target = normal(B, 2, seed=4)
    layer = ScoredAttention("dot", hard="reinforce")
    reinforce = Reinforce(mean_square)
    reinforce.build((B, 2))
    baseline = np.float32(0.8)

    def loss(query, key, value):
        """Returns the loss of the model plus the loss of `Reinforce`."""
        attended, log_probability = layer(
            query, value, key, training=True, return_log_probability=True
        )
        prediction = prediction_of(attended)
        _, _, (added,) = reinforce.stateless_call(
            [],
            [ops.convert_to_tensor(baseline)],
            prediction,
            ops.convert_to_tensor(target),
            log_probability,
            training=True,
            return_losses=True,
        )
        return ops.mean(mean_square(target, prediction)) + added

    def soft_weights(query, key):
        return ops.softmax(ops.matmul(query, ops.transpose(key, (0, 2, 1))))

    def expected_loss(query, key, value):
        probabilities = soft_weights(query, key)
        total = 0.0
        for first, second in itertools.product(range(keys), repeat=2):
            attended = ops.stack([value[:, first], value[:, second]], axis=1)
            losses = mean_square(target, prediction_of(attended))
            total += ops.mean(
                probabilities[:, 0, first]
                * probabilities[:, 1, second]
                * losses
            )
        return total

    arrays = query, key, value
    probabilities = values(
        soft_weights(*map(ops.convert_to_tensor, (query, key)))
    )
    total = [np.zeros_like(array) for array in arrays]
    for pair in itertools.product(range(keys), repeat=queries):
        # Large enough to determine the choice.
        noise = 1e4 * np.eye(keys, dtype="float32")[list(pair)][None]
        monkeypatch.setattr(
            module,
            "gumbel_noise",
            lambda *_, noise=noise: ops.convert_to_tensor(noise),
        )
        weight = probabilities[:, 0, pair[0]] * probabilities[:, 1, pair[1]]
        for sum_, part in zip(total, gradient(loss, *arrays), strict=True):
            sum_ += weight[:, None, None] * part
    expected = gradient(expected_loss, *arrays)
    for sum_, exact in zip(total, expected, strict=True):
        assert_close(sum_, exact)
        assert np.abs(exact).max() > 1e-2


def look_up(hard):
    """Returns models that look up the value of the key named by the query."""
    query, key, value = (
        keras.Input((1, 4)),
        keras.Input((4, 4)),
        keras.Input((4, 2)),
    )
    layer = ScoredAttention("general", hard=hard, seed=1)
    if hard == "gumbel":
        attended = layer(query, value, key)
        model = keras.Model([query, key, value], attended)
        return model, model
    target = keras.Input((1, 2))
    attended, log_probability = layer(
        query, value, key, return_log_probability=True
    )
    learned = Reinforce("mse")(attended, target, log_probability)
    learner = keras.Model([query, key, value, target], learned)
    return learner, keras.Model([query, key, value], attended)


@every_kind
def test_learns_a_lookup(hard):
    keras.utils.set_random_seed(0)
    count = 1024
    named = np.random.default_rng(0).integers(4, size=count)
    query = np.eye(4, dtype="float32")[named][:, None]
    key = np.repeat(np.eye(4, dtype="float32")[None], count, axis=0)
    value = normal(count, 4, 2, seed=1)
    target = value[np.arange(count), named][:, None]
    learner, predictor = look_up(hard)
    predictor.compile(loss="mse")
    learner.compile(keras.optimizers.Adam(0.05), "mse")
    inputs = [query, key, value]
    given = [*inputs, target][: len(learner.inputs)]
    before = predictor.evaluate(inputs, target, batch_size=128, verbose=0)
    learner.fit(given, target, batch_size=128, epochs=10, verbose=0)
    after = predictor.evaluate(inputs, target, batch_size=128, verbose=0)
    assert before > 0.5
    assert after < 1e-6


def test_contract_with_log_probability():
    output, log_probability = check_layer(
        # In half precision, the outputs differ in dtype: see the next test.
        lambda dtype=None: ScoredAttention("dot", hard="reinforce"),
        (QUERY, normal(B, S, QUERY.shape[-1])),
        {"return_log_probability": True},
        mixed_dtype="float32",
        trains=False,
    )
    assert output.shape == (B, T, QUERY.shape[-1])
    assert log_probability.shape == (B, T)
    assert_differs(log_probability, np.zeros((B, T)))


def test_log_probability_is_float32_in_half_precision():
    layer = make("general", hard="reinforce", dtype="mixed_float16")
    output, log_probability = layer(
        QUERY, VALUE, KEY, return_log_probability=True, training=True
    )
    assert keras.backend.standardize_dtype(output.dtype) == "float16"
    dtype = keras.backend.standardize_dtype(log_probability.dtype)
    assert dtype == "float32"
