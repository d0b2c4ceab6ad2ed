"""Attributes that change between two searches take effect in the second."""

import copy

import keras
import numpy as np
import pytest

from keras_attn.decoding import GreedySearch, generate, stream
from keras_attn.models import GPT
from tests.helpers.contract import randomize
from tests.helpers.tree import Tree

pytestmark = pytest.mark.captured_steps

SOURCES = np.array([[0], [1]], "int32")


def gpt(**kwargs):
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4}
    model = GPT(11, max_sequence_length=24, **sizes, **kwargs)
    return randomize(model, scale=0.7)


def scores(model):
    return model.generate([[5, 6, 7, 8]], 3, GreedySearch((), 3)).scores


def test_special_ids():
    tree = Tree.random(2, size=8, length=3)
    tree.end_id = None
    decoded = tree_tokens(tree)
    assert (decoded.lengths == 3).all()
    # What was the first token of the first row ends it from now on.
    tree.end_id = int(decoded.tokens[0, 0, 0])
    assert tree_tokens(tree).lengths[0, 0] == 1
    tree.pad_id = 7 if tree.end_id != 7 else 6
    assert (tree_tokens(tree).tokens[0, 0, 1:] == tree.pad_id).all()
    tree.end_id, tree.pad_id = None, 0
    np.testing.assert_array_equal(tree_tokens(tree).tokens, decoded.tokens)


def tree_tokens(tree):
    *_, last = stream(tree, SOURCES, 3, "greedy")
    model = copy.copy(tree)  # shares no programs
    expected = generated(model)
    found = generated(tree)
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_array_equal(last.tokens, expected.tokens)
    return found


def generated(tree):
    return generate(tree, SOURCES, 3, "greedy")


def epsilon(model):
    model._norm.epsilon = 10.0


def activation(model):
    model._blocks[0]._network._inner.activation = keras.ops.negative


@pytest.mark.parametrize("change", [epsilon, activation])
def test_attributes_of_layers(change):
    model = gpt()
    before = scores(model)
    change(model)
    after = scores(model)
    fresh = gpt()
    change(fresh)
    np.testing.assert_allclose(after, scores(fresh), rtol=1e-5)
    assert np.abs(after - before).max() > 1e-3


def test_attributes_of_strategies():
    tree = Tree.random(2, size=8, length=3)

    class Banning(GreedySearch):
        banned = 0.0

        def __init__(self):
            super().__init__()
            self.tokens = []

        def get_next_token(self, log_probs, step, uniforms):
            ids = np.isin(np.arange(8), self.tokens)
            return super().get_next_token(
                keras.ops.where(ids, -1e9, log_probs), step, uniforms
            )

    strategy = Banning()
    first = generate(tree, SOURCES, 3, strategy).tokens[0, 0, 0]
    strategy.tokens.append(int(first))
    assert generate(tree, SOURCES, 3, strategy).tokens[0, 0, 0] != first
    strategy.tokens.clear()
    assert generate(tree, SOURCES, 3, strategy).tokens[0, 0, 0] == first


def test_searches_after_training_compile_nothing():
    model = gpt()
    ids = np.array([[5, 6, 7, 8]] * 2)
    model.generate([[5, 6]], 3)
    programs = dict(vars(model)["_keras_attn_programs"]._kept)
    assert programs
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=False)
    model.fit(ids, ids, verbose=0)
    model.generate([[5, 6]], 3)
    kept = vars(model)["_keras_attn_programs"]._kept
    assert all(kept[key] is program for key, program in programs.items())
