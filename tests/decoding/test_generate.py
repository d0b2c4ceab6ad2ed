"""`generate`: batches, compiled programs and argument errors."""

import gc
import weakref

import keras
import numpy as np
import pytest

import keras_attn
from keras_attn.decoding import generate
from keras_attn.models import Transformer
from tests.decoding.markov import Markov
from tests.decoding.markov_cases import SOURCES, by_brute_force, markov
from tests.helpers.brute_force import assert_same
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import SOURCE, tiny_transformer

COMPILED = keras.backend.backend() in ("jax", "tensorflow")


@pytest.mark.parametrize("batch_size", [1, 2, 5, 32])
def test_last_batch_is_padded(batch_size):
    model = markov()
    decoded = generate(model, SOURCES, 4, "greedy", batch_size=batch_size)
    assert_same(decoded, by_brute_force(model, SOURCES, 4))
    assert {rows for rows, _ in model.sources} == {min(batch_size, 5)}


@pytest.mark.every_backend
def test_assigned_weights_take_effect():
    model = markov()
    first = generate(model, SOURCES, 4, "greedy")
    model.variables[0].assign(markov().variables[0])
    traced = model.steps
    second = generate(model, SOURCES, 4, "greedy")
    assert_same(second, by_brute_force(model, SOURCES, 4))
    assert (first.scores != second.scores).all()
    if COMPILED:
        assert model.steps == traced


@pytest.mark.every_backend
def test_other_lengths_and_weights_do_not_recompile(monkeypatch):
    steps, shapes = [], set()
    encode, step = Transformer.encode, Transformer.decode_step

    def counted_step(self, tokens, state):
        steps.append(1)
        return step(self, tokens, state)

    def watched_encode(self, source_ids, training=None):
        shapes.add(tuple(source_ids.shape))
        return encode(self, source_ids, training=training)

    monkeypatch.setattr(Transformer, "decode_step", counted_step)
    monkeypatch.setattr(Transformer, "encode", watched_encode)
    model = tiny_transformer()
    first = model.generate(SOURCE, max_new_tokens=5)
    traced = len(steps)
    longer = np.pad(SOURCE, ((0, 0), (0, 12)))
    for source in (SOURCE[:, :1], longer, longer.tolist()):
        again = model.generate(source, max_new_tokens=5)
    np.testing.assert_array_equal(again.tokens, first.tokens)
    np.testing.assert_allclose(again.scores, first.scores, rtol=1e-6)
    randomize(model, seed=1)
    other = model.generate(SOURCE, max_new_tokens=5)
    assert (other.scores != first.scores).all()
    assert shapes == {(2, 16)}
    if COMPILED:
        assert len(steps) == traced
    long = np.full((2, 17), 4)
    model.generate(long, max_new_tokens=5)
    assert shapes == {(2, 16), (2, 32)}


def test_compiled_program_does_not_keep_its_model_alive():
    model = markov()
    generate(model, SOURCES, 3, "greedy")
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, "greedy"), r"`max_new_tokens` must be a positive integer.*=0"),
        ((2.5, "greedy"), r"`max_new_tokens` must be a positive integer.*2.5"),
        ((4, "greedily"), r"`strategy` must be one of 'greedy'.*'greedily'"),
        ((4, None), r"`strategy`"),
        ((4, keras_attn.decoding.GreedySearch), r"`strategy` must be a name"),
        ((4, "greedy", 0), r"`batch_size` must be a positive integer"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate(markov(), SOURCES, *arguments)


def test_generate_inside_capture_raises():
    model = tiny_transformer()
    with keras_attn.ops.capture_weights():
        with pytest.raises(RuntimeError, match="captured inside generate"):
            model.generate(SOURCE)
    with keras_attn.ops.capture_weights():
        with pytest.raises(RuntimeError, match="teacher-forced"):
            generate(Markov(np.zeros((1, 3, 3))), SOURCES, 2, "greedy")
