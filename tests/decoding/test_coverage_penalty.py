"""The coverage penalty of BeamSearch against a search with lists."""

import functools
import itertools

import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import (
    BeamSearch,
    DiverseBeamSearch,
    generate,
    loop,
    stream,
)
from keras_attn.models import Transformer
from tests.decoding.test_diverse_beam_search import diverse_beam_search
from tests.helpers.cases import once
from tests.helpers.decoding_reference import (
    assert_equals,
    beam_search,
    everything,
    gnmt,
)
from tests.helpers.tree import Tree

SIZE, LENGTH = 7, 4
SOURCES = [[3, 4, 5, 6, 2], [6, 2], [5, 5, 3, 2], [4, 6, 3, 2], [3, 6, 5, 4, 2]]


@pytest.fixture(scope="module")
def model():
    model = Transformer(
        SIZE, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8
    )
    # Sharp attention, log-probabilities that differ little, and the same
    # weights on every backend.
    draw = np.random.default_rng(4)
    for variable in model.trainable_variables:
        noise = draw.normal(size=variable.shape)
        if len(variable.shape) == 1:
            variable.assign(ops.convert_to_numpy(variable) + 0.5 * noise)
        else:
            is_embedding = "embedding" in variable.path
            variable.assign(noise * (0.3 if is_embedding else 0.8))
    return model


@pytest.fixture(scope="module")
def tables(model):
    """Log-probabilities and attention after all prefixes, per source.

    From two passes over whole sequences, not from decoding steps.
    """
    prefixes = np.array(
        list(itertools.product(range(3, SIZE), repeat=LENGTH - 1)), "int32"
    )
    count = len(prefixes)
    ids = np.zeros((len(SOURCES), 5), "int32")
    for row, source in zip(ids, SOURCES, strict=True):
        row[: len(source)] = source
    target = np.insert(prefixes, 0, model.start_id, axis=1)
    many = np.repeat(ids, count, axis=0), np.tile(target, (len(ids), 1))
    log_probs = ops.convert_to_numpy(ops.log_softmax(model(many)))
    log_probs = log_probs.reshape(len(ids), count, LENGTH, SIZE)
    tokens = np.insert(prefixes, LENGTH - 1, 3, axis=1)
    weights = model.align(
        ops.convert_to_tensor(ids),
        ops.convert_to_tensor(np.tile(tokens, (len(ids), 1, 1))),
        ops.convert_to_tensor(np.full((len(ids), count), LENGTH, "int32")),
    )
    # Of the last layer, the mean over the heads.
    weights = ops.convert_to_numpy(weights)[:, :, -1].mean(2)
    found = []
    for row, source in enumerate(SOURCES):
        table = {}
        for number, prefix in enumerate(prefixes):
            for step in range(LENGTH):
                table[tuple(prefix[:step])] = (
                    log_probs[row, number, step].astype("float64"),
                    weights[row, number, step, : len(source)].astype("float64"),
                )
        found.append(table)
    return found


def penalized(table, beta):
    """Returns `log_probs` and `bonus` of the reference searches."""

    def bonus(tokens):
        steps = range(len(tokens))
        covered = sum(table[tuple(tokens[:step])][1] for step in steps)
        return beta * np.log(np.minimum(covered, 1.0)).sum()

    return lambda tokens: table[tuple(tokens)][0], bonus


def allowed(tokens):
    return range(2, SIZE)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "width, top, beta, early_stopping",
    [(3, 2, 0.5, False), *once([(1, 1, 2.0, False), (4, 4, 2.0, True)])],
)
def test_equals_a_search_with_lists(
    model, tables, width, top, beta, early_stopping
):
    strategy = BeamSearch(
        width, top, early_stopping=early_stopping, coverage_penalty=beta
    )
    found = model.generate(SOURCES, LENGTH, strategy)
    penalty = functools.partial(gnmt, alpha=0.6)
    expected = []
    for table in tables:
        log_probs, bonus = penalized(table, beta)
        expected.append(
            beam_search(
                log_probs,
                allowed,
                *(LENGTH, 2, width, top, penalty, early_stopping),
                bonus=bonus,
            )
        )
    assert_equals(found, expected)


@pytest.mark.one_backend
def test_enough_beams_find_the_optimum(model, tables):
    strategy = BeamSearch(200, 5, 0.0, coverage_penalty=3.0)
    found = model.generate(SOURCES, LENGTH, strategy)
    expected = []
    for table in tables:
        log_probs, bonus = penalized(table, 3.0)
        possible = everything(log_probs, allowed, LENGTH, 2)
        ranked = [(score + bonus(tokens), tokens) for score, tokens in possible]
        expected.append(sorted(ranked, key=lambda pair: -pair[0]))
    assert_equals(found, expected)
    # The penalty changes the results.
    plain = model.generate(SOURCES, LENGTH, BeamSearch(200, 5, 0.0))
    assert (plain.tokens[:, 0] != found.tokens[:, 0]).any(-1).sum() >= 2
    # Padding does not: all but the longest sources were padded.
    alone = model.generate(SOURCES[1:2], LENGTH, strategy)
    np.testing.assert_array_equal(alone.tokens[0], found.tokens[1])


@pytest.mark.one_backend
def test_in_diverse_groups(model, tables, monkeypatch):
    strategy = DiverseBeamSearch(
        4, 4, 0.0, coverage_penalty=0.5, diversity_penalty=0.6
    )
    # The slots for tokens are added as the search goes on.
    monkeypatch.setattr(loop, "FIRST_LENGTH", 2)
    found = model.generate(SOURCES, LENGTH, strategy)
    expected = []
    for table in tables:
        log_probs, bonus = penalized(table, 0.5)
        expected.append(
            diverse_beam_search(
                log_probs,
                allowed,
                *(4, 4, 2, 0.6, lambda n: 1.0),
                bonus=bonus,
            )
        )
    assert_equals(found, expected)
    *_, last = stream(model, SOURCES, LENGTH, strategy)
    np.testing.assert_array_equal(last.tokens, found.tokens)


@pytest.mark.one_backend
def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"`coverage_penalty` must be.*-0.1"):
        BeamSearch(coverage_penalty=-0.1)
    tree = Tree.random(1, size=4, length=2)
    with pytest.raises(ValueError, match="`coverage_penalty` needs a model"):
        generate(
            tree, np.zeros((1, 1), "int32"), 2, BeamSearch(coverage_penalty=0.2)
        )
