"""Transformer training, prediction and mixed precision."""

import keras
import numpy as np
import pytest

from keras_attn.training import SequenceCrossentropy, TokenAccuracy
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.tiny_models import (
    LABELS,
    SOURCE,
    TARGET,
    tiny_transformer,
    untrained_transformer,
)

SENTENCES = np.array(
    [[3, 4, 5, 2], [5, 4, 3, 2], [9, 2, 0, 0], [7, 7, 2, 0]], "int32"
)


@pytest.fixture(scope="module")
def copier():
    """A model trained to copy four sentences, with its data and history."""
    model = untrained_transformer(hidden_dim=16, intermediate_dim=32)
    model.compile(
        keras.optimizers.Adam(0.02),
        SequenceCrossentropy(),
        weighted_metrics=[TokenAccuracy()],
    )
    target = np.concatenate([np.full((4, 1), 1), SENTENCES[:, :-1]], axis=1)
    target[SENTENCES == 0] = 0
    pair = SENTENCES, target.astype("int32")
    history = model.fit(
        pair,
        SENTENCES,
        epochs=60,
        verbose=0,
        validation_data=(pair, SENTENCES),
        validation_freq=60,
    )
    return model, pair, history.history


@pytest.mark.one_backend("torch")
def test_learns_to_copy(copier):
    model, pair, history = copier
    assert history["loss"][0] > 1.5
    assert history["loss"][-1] < 0.1
    assert history["val_token_accuracy"] == [1.0]
    loss, accuracy = model.evaluate(pair, SENTENCES, verbose=0)
    assert loss < 0.1 and accuracy == 1.0


def test_predict_equals_call(copier):
    model, pair, _ = copier
    logits = model.predict(pair, batch_size=4, verbose=0)
    np.testing.assert_allclose(logits, to_numpy(model(pair)), atol=1e-5)
    best = logits.argmax(-1)
    np.testing.assert_array_equal(
        best[SENTENCES != 0], SENTENCES[SENTENCES != 0]
    )


def test_generates_the_learned_sentences(copier):
    model, _, _ = copier
    decoded = model.generate(SENTENCES, max_new_tokens=6)
    expected = np.zeros((4, 1, 6), "int32")
    expected[:, 0, :4] = SENTENCES
    np.testing.assert_array_equal(decoded.tokens, expected)
    np.testing.assert_array_equal(decoded.lengths[:, 0], [4, 4, 2, 3])
    assert (decoded.scores > -0.5).all()


@pytest.mark.parametrize("policy", ["mixed_float16", *once(["mixed_bfloat16"])])
def test_mixed_precision(policy):
    model = tiny_transformer(dtype=policy)
    exact = tiny_transformer()
    logits = model((SOURCE, TARGET))
    assert keras.backend.standardize_dtype(logits.dtype) == policy[6:]
    np.testing.assert_allclose(
        to_numpy(keras.ops.cast(logits, "float32")),
        to_numpy(exact((SOURCE, TARGET))),
        atol=0.05,
    )
    assert {v.dtype for v in model.trainable_weights} == {"float32"}
    model.compile(keras.optimizers.SGD(0.1), SequenceCrossentropy())
    before = model.get_weights()
    model.fit((SOURCE, TARGET), LABELS, epochs=1, verbose=0)
    after = model.get_weights()
    assert all(np.isfinite(array).all() for array in after)
    assert any(
        not np.array_equal(a, b) for a, b in zip(before, after, strict=True)
    )
    decoded = model.generate(SOURCE, max_new_tokens=3)
    assert np.isfinite(decoded.scores).all()
    assert decoded.scores.dtype == "float32"


def test_dropout_applies_in_training_only():
    model = tiny_transformer(dropout=0.5)
    inference = to_numpy(model((SOURCE, TARGET)))
    exact = to_numpy(tiny_transformer()((SOURCE, TARGET)))
    np.testing.assert_array_equal(inference, exact)
    state = model.start_decoding(keras.ops.convert_to_tensor(SOURCE), 3)
    logits, _ = model.decode_step(state.tokens, state)
    np.testing.assert_allclose(to_numpy(logits)[:, 0], exact[:, 0], atol=1e-5)
    first, second = (
        to_numpy(model((SOURCE, TARGET), training=True)) for _ in range(2)
    )
    assert np.abs(first - inference).max() > 1e-2
    assert np.abs(first - second).max() > 1e-2
