"""Captured steps of each model and strategy give the results of plain ones."""

import keras
import numpy as np
import pytest

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling
from tests.helpers.saved_models import MODELS, random_model
from tests.helpers.tiny_models import SOURCE, talkative_transformer

pytestmark = [
    pytest.mark.captured_steps,
    pytest.mark.skipif(
        keras.backend.backend() != "torch",
        reason="other backends compile the loop",
    ),
]
STRATEGIES = {
    "greedy": GreedySearch(suppress_tokens=[3]),
    "beam": BeamSearch(3, 2, min_new_tokens=2),
    "sample": Sampling(0.8, 5, 0.9, num_return_sequences=2, seed=4),
}
LENGTH = 6


def sources_of(name):
    """Returns what `generate` takes, from the inputs of a call."""
    inputs = MODELS[name][1]
    return inputs[0] if isinstance(inputs, tuple) else inputs


def assert_equal_steps(model, inputs, strategy, captures, **kwargs):
    """Decodes with captured steps, then with plain ones."""
    model.torch_steps = "captured"
    found = model.generate(inputs, LENGTH, strategy, **kwargs)
    assert len(captures) == 2  # the start and the step
    model.torch_steps = "plain"
    expected = model.generate(inputs, LENGTH, strategy, **kwargs)
    assert len(captures) == 2
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)
    return expected


# The steps of a model do not depend on the strategy, except that beams are
# reordered. GPT and, below, Transformer run with all strategies.
@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        *(("gpt", strategy) for strategy in STRATEGIES),
        ("image_captioner", "beam"),
        ("image_captioner", "sample"),
        ("recurrent_seq2seq", "beam"),
        ("speech_transformer", "beam"),
        ("speech_transformer", "greedy"),
        ("transformer_xl", "beam"),
        ("xlnet", "beam"),
        ("xlnet", "sample"),
    ],
)
def test_every_model(name, strategy, captures):
    model = random_model(name)
    inputs = sources_of(name)
    assert_equal_steps(model, inputs, STRATEGIES[strategy], captures)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_prefix_and_weights(strategy, captures):
    model = talkative_transformer(seed=8, normalize_first=True)
    decoded = assert_equal_steps(
        model,
        SOURCE,
        STRATEGIES[strategy],
        captures,
        prefix=[[4, 5], [6]],
        return_weights=True,
    )
    assert decoded.tokens[0, 0, :2].tolist() == [4, 5]
