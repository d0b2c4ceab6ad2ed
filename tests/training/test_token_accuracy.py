"""TokenAccuracy against a NumPy count over batches of different sizes."""

import keras
import numpy as np
import pytest

from keras_attn.training import SequenceCrossentropy, TokenAccuracy
from tests.training.padded_batches import (
    Batches,
    language_model,
    padded_batches,
)


def reference(model, batches, pad_id=0, weighted=False):
    correct = total = 0.0
    for tokens, labels, weights in batches:
        table = model.get_weights()[0].astype("float64")
        for index in np.ndindex(*labels.shape):
            if labels[index] == pad_id:
                continue
            weight = weights[index] if weighted else 1.0
            best = np.argmax(table[tokens[index]])
            correct += weight * (best == labels[index])
            total += weight
    return correct / total


def likely_batches(model, pad_id=0):
    """Returns batches on which the model's accuracy is about one half."""
    table = model.get_weights()[0]
    batches = []
    for tokens, labels, weights in padded_batches(pad_id):
        best = np.argmax(table[tokens], -1).astype("int32")
        right = (weights > 1) & (labels != pad_id) & (best != pad_id)
        batches.append((tokens, np.where(right, best, labels), weights))
    return batches


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pad_id", [0, -1])
def test_totals_over_batches_of_different_sizes(pad_id, weighted):
    model = language_model()
    batches = likely_batches(model, pad_id)
    metric = TokenAccuracy(pad_id)
    for tokens, labels, weights in batches:
        metric.update_state(
            labels, model(tokens), weights if weighted else None
        )
    expected = reference(model, batches, pad_id, weighted)
    assert 0.2 < expected < 0.8
    np.testing.assert_allclose(float(metric.result()), expected, rtol=1e-6)


def test_weights_per_sequence():
    logits = np.eye(3, dtype="float32")[[[1, 1], [1, 2]]]
    labels = np.array([[1, 2], [1, 0]])
    metric = TokenAccuracy()
    metric.update_state(labels, logits, np.float32([1, 2]))
    # Correct: one token of weight 1, one of weight 2. Wrong: one of weight 1.
    np.testing.assert_allclose(float(metric.result()), 3 / 4)


def test_padding_is_ignored_even_if_nan():
    logits = np.eye(3, dtype="float32")[[[1, 0, 0]]]
    logits[0, 2] = np.nan
    assert float(TokenAccuracy()(np.array([[2, 0, 0]]), logits)) == 0.0


def test_result_is_zero_before_updates_and_after_reset():
    metric = TokenAccuracy()
    assert float(metric.result()) == 0.0
    logits = np.eye(3, dtype="float32")[[[1]]]
    assert float(metric(np.array([[0]]), logits)) == 0.0
    assert float(metric(np.array([[1]]), logits)) == 1.0
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_in_fit_and_evaluate():
    model = language_model()
    batches = likely_batches(model)
    model.compile(
        keras.optimizers.SGD(0.0),
        SequenceCrossentropy(),
        metrics=[TokenAccuracy()],
        weighted_metrics=[TokenAccuracy(name="weighted")],
    )
    expected = {
        "token_accuracy": reference(model, batches),
        "weighted": reference(model, batches, weighted=True),
    }
    history = model.fit(Batches(batches), epochs=2, verbose=0, shuffle=False)
    found = model.evaluate(Batches(batches), return_dict=True, verbose=0)
    for name, value in expected.items():
        np.testing.assert_allclose(history.history[name], value, rtol=1e-5)
        np.testing.assert_allclose(found[name], value, rtol=1e-5)


def test_config_round_trips():
    metric = TokenAccuracy(pad_id=7, name="hits")
    again = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert again.get_config() == metric.get_config()
    assert (again.pad_id, again.name) == (7, "hits")


def test_invalid_inputs_raise():
    logits = np.zeros((2, 3, 4), "float32")
    with pytest.raises(ValueError, match="`y_true` must hold integers"):
        TokenAccuracy()(np.zeros((2, 3), "float32"), logits)
    with pytest.raises(ValueError, match="`y_true` must have the shape"):
        TokenAccuracy()(np.zeros((2, 4), "int32"), logits)
    with pytest.raises(ValueError, match="`pad_id` must"):
        TokenAccuracy(pad_id="<pad>")


@pytest.mark.parametrize("shape", [(0, 7), (3, 0), (0, 0)])
def test_zero_length_axes_change_nothing(shape):
    metric = TokenAccuracy()
    labels, logits = np.zeros(shape, "int32"), np.zeros((*shape, 3), "float32")
    for weight in (None, np.ones(shape[:1]), np.ones(shape)):
        metric.update_state(labels, logits, weight)
        assert float(metric.result()) == 0.0
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
        TokenAccuracy(**arguments)
