"""Sampling against a loop with the same draws and against its distribution."""

import keras
import numpy as np
import pytest
from scipy import stats

from keras_attn.decoding import Sampling, generate
from keras_attn.decoding.row_streams import uniform_rows
from tests.helpers.decoding_reference import assert_equals, may_follow
from tests.helpers.tree import Tree

SOURCES = np.arange(40, dtype="int32")[:, None]


def distribution(log_probs, allowed, temperature=1.0, top_k=None, top_p=None):
    """Returns {token: probability}, most likely first."""
    ranked = sorted(allowed, key=lambda token: -log_probs[token])
    ranked = ranked[:top_k]
    weights = np.exp(log_probs[ranked] / temperature)
    weights = weights / weights.sum()
    if top_p is not None:
        before = np.concatenate([[0], weights.cumsum()[:-1]])
        weights = np.where(before < top_p, weights, 0)
    weights = weights / weights.sum()
    return {
        token: weight
        for token, weight in zip(ranked, weights, strict=True)
        if weight > 0
    }


def sampled(model, source, uniforms, max_new_tokens, allowed, **kwargs):
    """Returns (score, tokens) of one sequence for given uniform numbers."""
    tokens, score = [], 0.0
    while len(tokens) < max_new_tokens and model.end_id not in tokens:
        log_probs = model.log_probs(source, tokens)
        found = distribution(log_probs, allowed(tokens), **kwargs)
        if "top_k" not in kwargs and "top_p" not in kwargs:
            found = dict(sorted(found.items()))
        passed = np.cumsum(list(found.values())) > uniforms[len(tokens)]
        tokens.append(list(found)[int(np.argmax(passed))])
        score += log_probs[tokens[-1]]
    return score, tokens


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"temperature": 0.4},
        {"temperature": 3.0, "top_k": 3},
        {"top_k": 100},
        {"top_p": 0.6},
        {"temperature": 1.5, "top_k": 4, "top_p": 0.8},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "rules",
    [{}, {"banned": (3,), "min_new_tokens": 3, "prefix": (5,)}],
    ids=["free", "constrained"],
)
def test_equals_a_loop_with_the_same_draws(kwargs, rules):
    model = Tree.random(40, size=7, length=4)
    strategy = Sampling(
        seed=3,
        num_return_sequences=3,
        suppress_tokens=rules.get("banned", ()),
        min_new_tokens=rules.get("min_new_tokens", 0),
        **kwargs,
    )
    decoded = generate(
        model, SOURCES, 4, strategy, prefix=rules.get("prefix", None)
    )
    uniforms = uniform_rows(SOURCES, 3, 4, seed=3, pad_id=0)
    expected = [
        [
            sampled(
                model, source, draw, 4, may_follow(model, **rules), **kwargs
            )
            for draw in uniforms[row]
        ]
        for row, source in enumerate(SOURCES)
    ]
    assert_equals(decoded, expected)
    assert model.memory_shapes == {(32,)}


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.7}],
    ids=str,
)
def test_samples_follow_the_distribution(kwargs):
    """Chi-square test of the first token of 2,000 rows with 2 samples each."""
    model = Tree.random(1, size=8, length=1)
    sources = np.zeros((2000, 2), "int32")
    sources[:, 1] = np.arange(2000) + 1
    strategy = Sampling(seed=5, num_return_sequences=2, **kwargs)
    tokens = generate(model, sources, 1, strategy, batch_size=2000).tokens
    expected = distribution(
        model.log_probs([0], []), may_follow(model)([]), **kwargs
    )
    counts = np.array([(tokens == token).sum() for token in expected])
    assert counts.sum() == 4000
    frequencies = 4000 * np.array(list(expected.values()))
    assert stats.chisquare(counts, frequencies).pvalue > 0.01
    # The samples of one row are independent of each other.
    table = np.zeros((8, 8))
    np.add.at(table, (tokens[:, 0, 0], tokens[:, 1, 0]), 1)
    table = table[table.any(1)][:, table.any(0)]
    assert stats.chi2_contingency(table).pvalue > 0.01


@pytest.mark.every_backend
def test_seed_determines_the_samples():
    model = Tree.random(40, size=7, length=4)

    def tokens(seed):
        return generate(model, SOURCES, 4, Sampling(seed=seed)).tokens

    traced = [tokens(1), model.steps]
    np.testing.assert_array_equal(tokens(1), traced[0])
    assert (tokens(2) != traced[0]).any()
    if keras.backend.backend() != "torch":
        # The seed is not compiled in: another one does not recompile.
        assert model.steps == traced[1]
    first, second = tokens(None), tokens(None)
    assert (first != second).any()
    keras.utils.set_random_seed(0)
    np.testing.assert_array_equal(tokens(None), first)


def test_random_streams_depend_on_rows_only():
    rows = np.array([[5, 6, 0, 0], [7, 0, 0, 0], [6, 5, 0, 0]], "int32")
    drawn = uniform_rows(rows, 2, 5, seed=1, pad_id=0)
    assert drawn.dtype == "float32" and drawn.shape == (3, 2, 5)
    assert (drawn >= 0).all() and (drawn < 1).all()
    alone = uniform_rows(rows[1:2, :1], 1, 3, seed=1, pad_id=0)
    np.testing.assert_array_equal(alone[0, 0], drawn[1, 0, :3])
    assert len(np.unique(drawn)) == drawn.size
    # Left padding is ignored too.
    left = uniform_rows(np.array([[0, 0, 5, 6]]), 2, 5, seed=1, pad_id=0)
    np.testing.assert_array_equal(left[0], drawn[0])
    images = {"image": np.ones((2, 3, 3)), "mask": np.array([[True]] * 2)}
    images["image"][1] = 2
    one, other = uniform_rows(images, 1, 2, seed=1, pad_id=0)
    assert (one != other).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"temperature": 0}, "`temperature` must be a finite.*=0"),
        ({"temperature": float("inf")}, "`temperature` must be a finite.*=inf"),
        ({"temperature": 1e-46}, "`temperature` must be.*float32.*=1e-46"),
        ({"temperature": 1e39}, r"`temperature` must be.*float32.*=1e\+39"),
        ({"top_k": 0}, "`top_k` must be a positive integer.*=0"),
        ({"top_p": 0.0}, r"`top_p` must be a number in \(0, 1\].*=0.0"),
        ({"top_p": 1.5}, "`top_p` must be.*=1.5"),
        ({"seed": -1}, "`seed` must be an integer >= 0.*=-1"),
        ({"seed": 0.5}, "`seed` must be an integer >= 0.*=0.5"),
        (
            {"num_return_sequences": 0},
            "`num_return_sequences` must be a positive.*=0",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**arguments)


def test_config_round_trips():
    strategy = Sampling(0.7, 5, 0.9, 3, 2, (4,), 6)
    config = keras.saving.serialize_keras_object(strategy)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, Sampling)
    assert again.get_config() == strategy.get_config()
    assert again.get_config() == {
        "temperature": 0.7,
        "top_k": 5,
        "top_p": 0.9,
        "seed": 3,
        "num_return_sequences": 2,
        "suppress_tokens": [4],
        "min_new_tokens": 6,
        "rules": [],
    }
