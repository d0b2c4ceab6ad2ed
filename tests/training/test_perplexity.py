"""Perplexity against a float64 NumPy loop over batches of different sizes."""

import keras
import numpy as np
import pytest

from keras_attn.training import Perplexity, SequenceCrossentropy
from tests.training.padded_batches import (
    SIZE,
    Batches,
    language_model,
    padded_batches,
)


def reference(model, batches, pad_id=0, weighted=False):
    nats = total = 0.0
    table = model.get_weights()[0].astype("float64")
    for tokens, labels, weights in batches:
        for index in np.ndindex(*labels.shape):
            if labels[index] == pad_id:
                continue
            weight = weights[index] if weighted else 1.0
            p = np.exp(table[tokens[index]])
            nats -= weight * np.log(p[labels[index]] / p.sum())
            total += weight
    return np.exp(nats / total)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pad_id", [0, -1])
def test_totals_over_batches_of_different_sizes(pad_id, weighted):
    model = language_model()
    batches = padded_batches(pad_id)
    metric = Perplexity(pad_id)
    for tokens, labels, weights in batches:
        metric.update_state(
            labels, model(tokens), weights if weighted else None
        )
    expected = reference(model, batches, pad_id, weighted)
    np.testing.assert_allclose(float(metric.result()), expected, rtol=1e-5)


def test_in_fit_and_evaluate_with_a_smoothed_loss():
    model = language_model()
    batches = padded_batches()
    model.compile(
        keras.optimizers.SGD(0.0),
        SequenceCrossentropy(label_smoothing=0.3),
        metrics=[Perplexity()],
        weighted_metrics=[Perplexity(name="weighted")],
    )
    expected = {
        "perplexity": reference(model, batches),
        "weighted": reference(model, batches, weighted=True),
    }
    history = model.fit(Batches(batches), epochs=2, verbose=0, shuffle=False)
    found = model.evaluate(Batches(batches), return_dict=True, verbose=0)
    for name, value in expected.items():
        np.testing.assert_allclose(history.history[name], value, rtol=1e-5)
        np.testing.assert_allclose(found[name], value, rtol=1e-5)


def test_uniform_logits_give_the_vocabulary_size():
    labels = np.array([[3, 1, 0], [2, 0, 0]])
    for dtype in ("float16", "bfloat16", "float32"):
        logits = keras.ops.full((2, 3, SIZE), 60000.0, dtype=dtype)
        np.testing.assert_allclose(
            float(Perplexity()(labels, logits)), SIZE, rtol=1e-6
        )


def test_padding_and_weight_zero_have_no_influence():
    labels = np.array([[3, 1, 0]])
    logits = np.zeros((1, 3, SIZE), "float32")
    logits[0, 1, 1] = -np.inf  # infinite loss
    logits[0, 2] = np.nan
    weights = np.float32([[1, 0, 1]])
    metric = Perplexity()
    metric.update_state(labels, logits, weights)
    np.testing.assert_allclose(float(metric.result()), SIZE, rtol=1e-6)
    metric.update_state(labels, logits)
    assert float(metric.result()) == np.inf


def test_result_is_one_before_updates_and_after_reset():
    metric = Perplexity()
    assert float(metric.result()) == 1.0
    logits = np.zeros((1, 1, SIZE), "float32")
    assert float(metric(np.array([[0]]), logits)) == 1.0
    assert float(metric(np.array([[4]]), logits)) > 1.0
    metric.reset_state()
    assert float(metric.result()) == 1.0


def test_labels_outside_the_vocabulary_give_nan():
    logits = np.zeros((1, 2, SIZE), "float32")
    assert np.isnan(float(Perplexity()(np.array([[1, SIZE]]), logits)))


def test_config_round_trips():
    metric = Perplexity(pad_id=7, name="ppl")
    again = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert again.get_config() == metric.get_config()
    assert (again.pad_id, again.name) == (7, "ppl")


def test_invalid_inputs_raise():
    logits = np.zeros((2, 3, 4), "float32")
    with pytest.raises(ValueError, match="`y_true` must hold integers"):
        Perplexity()(np.zeros((2, 3), "float32"), logits)
    with pytest.raises(ValueError, match="`sample_weight` must give"):
        Perplexity().update_state(
            np.zeros((2, 3), "int32"), logits, np.ones((3, 3))
        )
    with pytest.raises(ValueError, match="`pad_id` must"):
        Perplexity(pad_id=True)


@pytest.mark.parametrize("shape", [(0, 7), (3, 0), (0, 0)])
def test_zero_length_axes_change_nothing(shape):
    metric = Perplexity()
    labels, logits = np.zeros(shape, "int32"), np.zeros((*shape, 3), "float32")
    for weight in (None, np.ones(shape[:1]), np.ones(shape)):
        metric.update_state(labels, logits, weight)
        assert float(metric.result()) == 1.0
    metric.update_state(np.array([[1]]), np.float32([[[0, 0, 0]]]))
    before = float(metric.result())
    metric.update_state(labels, logits)
    assert float(metric.result()) == before


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"pad_id": "a"}, "pad_id"),
        ({"pad_id": 2**31}, "pad_id"),
        ({"pad_id": 1.5}, "pad_id"),
        ({"name": 3}, "name"),
        ({"dtype": "int32"}, "dtype"),
    ],
)
def test_invalid_arguments_raise(arguments, name):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        Perplexity(**arguments)
