"""Models that return NaN or infinite logits raise, with the step."""

import keras
import numpy as np
import pytest

from keras_attn.decoding import Sampling, generate, stream
from tests.decoding.strategies import STRATEGIES, every_kind
from tests.helpers.tiny_models import tiny_transformer
from tests.helpers.tree import Tree

SIZE = 6
SOURCES = np.array([[0], [1], [2]], "int32")


def tree(logits):
    """Returns trees; in the second one, nodes of depth 1 have these logits."""
    model = Tree.random(3, SIZE, 3)
    table = keras.ops.convert_to_numpy(model.variables[0]).copy()
    # No sequence ends in the first two steps.
    table[:, :, model.end_id] = -50
    table[1, 1 : 1 + SIZE] = logits
    model.variables[0].assign(table)
    return model


def expect(step):
    return pytest.raises(
        ValueError, match=f"`model` must return logits.*in step {step} of"
    )


LOGITS = {
    "NaN": np.nan,
    "one NaN": [0, 0, 0, 0, 0, np.nan],
    "one inf": [0, 0, 0, np.inf, 0, 0],
    "all -inf": -np.inf,
}


@every_kind
def test_generate_names_the_step(name):
    model = tree(np.nan)
    for logits in LOGITS.values():
        table = keras.ops.convert_to_numpy(model.variables[0]).copy()
        table[1, 1 : 1 + SIZE] = logits
        model.variables[0].assign(table)
        with expect(2):
            generate(model, SOURCES, 3, STRATEGIES[name](), batch_size=2)
    assert np.isfinite(
        generate(model, SOURCES[[0, 2]], 3, STRATEGIES[name]()).scores
    ).all()


@every_kind
def test_stream_yields_the_steps_before(name):
    items = stream(tree(np.nan), SOURCES, 3, STRATEGIES[name]())
    assert next(items).step == 1
    with expect(2):
        next(items)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_numbers(value):
    model = tiny_transformer()
    variable = model.weights[0]
    variable.assign(np.full(variable.shape, value))
    with expect(1):
        model.generate([[5, 6, 2]], 4, Sampling(seed=1))


def test_lengths_past_the_first_cache(monkeypatch):
    monkeypatch.setattr("keras_attn.decoding.loop.FIRST_LENGTH", 1)
    with expect(2):
        generate(tree(np.nan), SOURCES, 3, "greedy")


def test_banning_all_tokens_has_another_message():
    model = tree(0.0)
    with pytest.raises(ValueError, match="`suppress_tokens` must leave a tok"):
        generate(model, SOURCES, 3, Sampling(suppress_tokens=[3, 4, 5, 2]))
    strategy = Sampling(suppress_tokens=[3, 4, 5], min_new_tokens=2)
    with pytest.raises(
        ValueError, match=r"besides the end token.*new_tokens=2"
    ):
        generate(model, SOURCES, 3, strategy)
