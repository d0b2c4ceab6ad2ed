"""Weights that a model prepares once for many searches."""

import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import Sampling, generate, stream
from tests.decoding.markov import Markov
from tests.decoding.markov_cases import SOURCES, by_brute_force, markov
from tests.helpers.arrays import to_numpy
from tests.helpers.brute_force import assert_same
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import SOURCE, tiny_transformer

pytestmark = pytest.mark.captured_steps

TARGET = np.array([[1, 9, 4], [1, 7, 3]], "int32")


class Prepared(Markov):
    """Reads its table, flipped, only from `state.weights`."""

    def prepare_weights(self):
        return {"flipped": ops.flip(self.variables[0], axis=2)}

    def decode_step(self, tokens, state):
        kinds, size, _ = self.variables[0].shape
        rows = ops.reshape(state.weights["flipped"], (kinds * size, size))
        beams = tokens.shape[0] // state.memory.shape[0]
        memory = ops.repeat(state.memory, beams, axis=0)
        flipped = ops.take(rows, memory[:, None] * size + tokens, axis=0)
        return ops.flip(flipped, axis=-1), state


@pytest.fixture
def model():
    return Prepared(ops.convert_to_numpy(markov().variables[0]))


@pytest.mark.parametrize("strategy", ["greedy", "beam", Sampling(seed=3)])
def test_steps_receive_the_prepared_weights(model, strategy):
    decoded = generate(model, SOURCES, 4, strategy)
    plain = Markov(ops.convert_to_numpy(model.variables[0]))
    expected = generate(plain, SOURCES, 4, strategy)
    np.testing.assert_array_equal(decoded.tokens, expected.tokens)
    np.testing.assert_allclose(decoded.scores, expected.scores, atol=1e-5)


def test_assigned_weights_take_effect(model):
    assert_same(
        generate(model, SOURCES, 4, "greedy"), by_brute_force(model, SOURCES, 4)
    )
    model.variables[0].assign(-model.variables[0])
    assert_same(
        generate(model, SOURCES, 4, "greedy"), by_brute_force(model, SOURCES, 4)
    )


def test_stream_receives_the_prepared_weights(model):
    *_, last = stream(model, SOURCES, 4, "greedy")
    np.testing.assert_array_equal(
        last.tokens, generate(model, SOURCES, 4, "greedy").tokens
    )


def test_stream_uses_the_weights_at_its_first_item(model):
    items = stream(model, SOURCES, 4, "greedy")
    model.variables[0].assign(-model.variables[0])
    *_, last = items
    np.testing.assert_array_equal(
        last.tokens, generate(model, SOURCES, 4, "greedy").tokens
    )


FORMS = {
    "tied": {},
    "untied": {"tie_word_embeddings": False},
    "tied, biased": {"output_bias": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_prepared_weights_do_not_change_the_logits(form):
    model = randomize(tiny_transformer(num_layers=2, **FORMS[form]))
    source = ops.convert_to_tensor(SOURCE)
    states = [model.start_decoding(source, 6) for _ in range(2)]
    states[1] = states[1]._replace(weights=model.prepare_weights())
    for step in range(TARGET.shape[1]):
        tokens = ops.convert_to_tensor(TARGET[:, step : step + 1])
        logits = []
        for number, state in enumerate(states):
            found, states[number] = model.decode_step(tokens, state)
            logits.append(to_numpy(found))
        np.testing.assert_allclose(*logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("form", ["tied", *once(["untied", "tied, biased"])])
def test_transformer_generates_with_its_current_weights(form):
    first, second = (
        randomize(tiny_transformer(**FORMS[form]), seed=seed) for seed in (1, 2)
    )
    before = first.generate(SOURCE, max_new_tokens=5)
    expected = second.generate(SOURCE, max_new_tokens=5)
    first.set_weights(second.get_weights())
    after = first.generate(SOURCE, max_new_tokens=5)
    np.testing.assert_array_equal(after.tokens, expected.tokens)
    np.testing.assert_allclose(after.scores, expected.scores, atol=1e-5)
    assert np.abs(before.scores - after.scores).max() > 1e-3


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_layers_quantized_later_are_not_fused():
    first = tiny_transformer()
    first.generate(SOURCE, max_new_tokens=5)
    second = tiny_transformer(random=False)
    second.set_weights(first.get_weights())
    assert all(first.prepare_weights().blocks)
    for model in (first, second):
        model.quantize("int8")
    assert not any(first.prepare_weights().blocks)
    found, expected = (
        model.generate(SOURCE, max_new_tokens=5) for model in (first, second)
    )
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
