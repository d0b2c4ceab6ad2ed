"""`stream`: every step, the last one equal to `generate`."""

import gc
import importlib
import itertools
import weakref

import keras
import numpy as np
import pytest

import keras_attn
from keras_attn.backend import compiled
from keras_attn.decoding import (
    BeamSearch,
    GreedySearch,
    StreamedToken,
    stream,
)
from keras_attn.decoding import loop as decoding_loop
from tests.decoding.strategies import STRATEGIES, every_kind
from tests.helpers.tiny_models import talkative_transformer
from tests.helpers.tree import Tree

ROWS = [[5, 6, 7, 2], [8, 2], [3, 4, 5, 6, 7, 2], [9, 9, 2], [10]]
PREFIX = [[4], [], [6, 7], [3], [10]]


@pytest.fixture(scope="module")
def model():
    return talkative_transformer(seed=8, num_layers=2)


def assert_equal(item, decoded):
    np.testing.assert_array_equal(item.tokens, decoded.tokens)
    np.testing.assert_array_equal(item.lengths, decoded.lengths)
    np.testing.assert_allclose(item.scores, decoded.scores, rtol=1e-5)


@every_kind
@pytest.mark.parametrize("prefix", [None, PREFIX], ids=["free", "prefix"])
def test_last_item_equals_generate(model, name, prefix):
    strategy = STRATEGIES[name]()
    items = list(
        model.stream(ROWS, max_new_tokens=6, strategy=strategy, prefix=prefix)
    )
    decoded = model.generate(
        ROWS, max_new_tokens=6, strategy=strategy, prefix=prefix
    )
    assert_equal(items[-1], decoded)
    assert [item.step for item in items] == list(range(1, len(items) + 1))
    assert items[-1].tokens.dtype == "int32"
    assert not items[-1].active.lengths.any()
    assert (items[-1].active.scores == -np.inf).all()
    for item in items[:-1]:
        assert isinstance(item, StreamedToken)
        assert (item.active.lengths > 0).any()


@every_kind
def test_active_hypotheses_extend_their_parents(model, name):
    items = list(
        model.stream(
            ROWS, max_new_tokens=6, strategy=STRATEGIES[name](), prefix=PREFIX
        )
    )
    for before, after in itertools.pairwise(items):
        alive = after.active.lengths > 0
        np.testing.assert_array_equal(alive, after.active.scores > -np.inf)
        assert (after.active.lengths[alive] == after.step).all()
        rows, indices = np.nonzero(alive)
        origins = after.active.parents[rows, indices]
        old = before.active.tokens[rows, origins]
        new = after.active.tokens[rows, indices]
        np.testing.assert_array_equal(
            new[:, : before.step], old[:, : before.step]
        )
        assert (new[:, before.step] != 0).all()
        assert not new[:, after.step :].any()
        gained = (
            after.active.scores[rows, indices]
            - before.active.scores[rows, origins]
        )
        assert (gained <= 1e-5).all()
        # Finished hypotheses stay unless a better one replaces them.
        assert (after.scores >= before.scores - 1e-5).all() or name in (
            "greedy",
            "sample",
            "top",
        )


@pytest.mark.parametrize("strategy", ["greedy", "sample"])
def test_items_are_prefixes_of_the_result(model, strategy):
    keras.utils.set_random_seed(3)
    items = list(model.stream(ROWS, max_new_tokens=6, strategy=strategy))
    last = items[-1]
    for item in items:
        lengths = np.minimum(last.lengths, item.step)
        np.testing.assert_array_equal(item.lengths, lengths)
        np.testing.assert_array_equal(
            item.tokens[..., : item.step], last.tokens[..., : item.step]
        )
        growing = item.active.lengths > 0
        np.testing.assert_array_equal(
            item.active.tokens[growing], item.tokens[growing]
        )


def test_first_step_of_beam_search():
    """The first step, computed from the log-probabilities."""
    tree = Tree.random(2, size=6, length=3)
    sources = np.array([[0], [1]], "int32")
    # Two must end, so no source is done immediately.
    first = next(stream(tree, sources, 3, BeamSearch(2, 2, 0.0)))
    for row in range(2):
        log_probs = tree.log_probs(sources[row], [])
        ranked = sorted(range(2, 6), key=lambda token: -log_probs[token])
        going = [token for token in ranked if token != 2][:2]
        assert first.active.tokens[row, :, 0].tolist() == going
        np.testing.assert_allclose(
            first.active.scores[row], log_probs[going], rtol=1e-5
        )
        ended = 2 in ranked[:2]
        assert first.lengths[row, 0] == ended
        expected = log_probs[2] if ended else -np.inf
        np.testing.assert_allclose(first.scores[row, 0], expected, rtol=1e-5)
    assert (first.active.parents == 0).all()


def test_steps_are_computed_lazily(monkeypatch):
    module = importlib.import_module("keras_attn.decoding.stream")
    calls = []

    def counted(function, *args):
        program = compiled(function, *args)

        def call(*args):
            calls.append(1)
            return program(*args)

        return call

    monkeypatch.setattr(module, "compiled", counted)
    tree = Tree(np.zeros((1, 1, 6)), np.zeros((1, 6)))
    items = stream(tree, np.zeros((1, 1), "int32"), 9, GreedySearch((), 9))
    assert not calls
    next(items)
    next(items)
    assert len(calls) == 3  # the start and two steps
    items.close()
    assert list(items) == [] and len(calls) == 3


@pytest.mark.captured_steps
def test_steps_are_compiled_once():
    tree = Tree(np.zeros((1, 1, 6)), np.zeros((1, 6)))
    sources = np.zeros((2, 1), "int32")
    strategy = BeamSearch(2, min_new_tokens=9)
    first = list(stream(tree, sources, 9, strategy))
    traced = tree.steps
    assert len(first) == 9 and traced < 4
    list(stream(tree, sources, 9, strategy))
    assert tree.steps == traced


@pytest.mark.captured_steps
def test_items_are_not_modified_later(model):
    items, copies = [], []
    for item in model.stream(ROWS, max_new_tokens=5, strategy="beam"):
        items.append(item)
        copies.append(keras.tree.map_structure(np.array, item))
    for item, copy in zip(items, copies, strict=True):
        keras.tree.map_structure(np.testing.assert_array_equal, item, copy)


@pytest.mark.captured_steps
@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_slots_grow_during_a_stream(name, monkeypatch):
    monkeypatch.setattr(decoding_loop, "FIRST_LENGTH", 2)
    model = talkative_transformer(seed=8, num_layers=2)
    items = list(model.stream(ROWS, 5, STRATEGIES[name]()))
    monkeypatch.setattr(decoding_loop, "FIRST_LENGTH", 64)
    model = talkative_transformer(seed=8, num_layers=2)
    assert_equal(items[-1], model.generate(ROWS, 5, STRATEGIES[name]()))
    assert {item.tokens.shape[-1] for item in items} == {5}


@pytest.mark.captured_steps
def test_stream_does_not_keep_its_model_alive():
    tree = Tree.random(1, size=6, length=3)
    list(stream(tree, np.zeros((1, 1), "int32"), 3, "beam"))
    alive = weakref.ref(tree)
    del tree
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"max_new_tokens": 0},
            "`max_new_tokens` must be a positive integer.*=0",
        ),
        ({"strategy": "greedily"}, "`strategy` must be one of.*'greedily'"),
        (
            {"strategy": BeamSearch(min_new_tokens=9)},
            "`min_new_tokens` must not",
        ),
        ({"prefix": [11]}, r"`prefix` must lie in \[0, 11\)"),
        ({"inputs": [[5], []]}, "`inputs` must hold a token in every row"),
        ({"inputs": [[11]]}, r"`inputs` must lie in \[0, 11\)"),
    ],
)
def test_invalid_arguments_raise_immediately(model, arguments, message):
    arguments = {"inputs": ROWS, "max_new_tokens": 4} | arguments
    with pytest.raises(ValueError, match=message):
        model.stream(**arguments)


def test_learned_position_table_limits_the_length():
    model = talkative_transformer(
        seed=8, position_embedding="learned", max_sequence_length=6
    )
    with pytest.raises(
        ValueError, match="`max_new_tokens` must not exceed the"
    ):
        model.stream(ROWS, max_new_tokens=7)
    with pytest.raises(
        ValueError, match="`max_new_tokens` must not exceed the"
    ):
        model.generate(ROWS, max_new_tokens=7)


def test_stream_inside_capture_raises(model):
    with keras_attn.ops.capture_weights():
        with pytest.raises(RuntimeError, match="captured inside stream"):
            model.stream(ROWS)
