"""Tests of all strategies: rows, prefixes, constraints, scores, weights."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from keras_attn.decoding import (
    BeamSearch,
    GreedySearch,
    Sampling,
    generate,
)
from tests.decoding.markov import Markov
from tests.decoding.strategies import (
    STRATEGIES,
    every_kind,
    every_strategy,
)
from tests.helpers import decoding_reference as reference
from tests.helpers.arrays import to_numpy
from tests.helpers.tiny_models import talkative_transformer
from tests.helpers.tree import Tree

SOURCES = np.array(
    [
        [5, 6, 7, 2, 0, 0],
        [8, 2, 0, 0, 0, 0],
        [3, 4, 5, 6, 7, 2],
        [9, 9, 2, 0, 0, 0],
        [10, 0, 0, 0, 0, 0],
    ],
    "int32",
)
LENGTHS = (SOURCES != 0).sum(1)


@pytest.fixture(scope="module")
def model():
    return talkative_transformer(seed=8, num_layers=2)


@every_kind
def test_rows_are_decoded_as_if_alone(model, name):
    strategy = STRATEGIES[name]()
    prefix = [[4], [], [6, 7], [3], [10]]
    # A long row, so that the others get more padding than alone.
    rows = [*SOURCES, np.arange(17) % 8 + 3]
    together = model.generate(
        rows, max_new_tokens=6, strategy=strategy, prefix=[*prefix, []]
    )
    assert len(np.unique(together.lengths)) > 1
    for row, length in enumerate(LENGTHS):
        alone = model.generate(
            SOURCES[row : row + 1, :length],
            max_new_tokens=6,
            strategy=strategy,
            prefix=prefix[row],
        )
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[row])
        np.testing.assert_array_equal(alone.lengths[0], together.lengths[row])
        np.testing.assert_allclose(
            alone.scores[0], together.scores[row], rtol=1e-5, atol=1e-5
        )


@pytest.mark.every_backend
@every_strategy
def test_scores_equal_those_of_a_teacher_forced_pass(model, name):
    strategy = STRATEGIES[name](min_new_tokens=3, suppress_tokens=[5])
    decoded = model.generate(
        SOURCES, max_new_tokens=6, strategy=strategy, prefix=[7]
    )
    _, top, length = decoded.tokens.shape
    tokens = decoded.tokens.reshape(-1, length)
    given = np.concatenate([np.ones_like(tokens[:, :1]), tokens[:, :-1]], 1)
    logits = model((np.repeat(SOURCES, top, axis=0), given))
    log_probs = to_numpy(ops.log_softmax(logits))
    gained = np.take_along_axis(log_probs, tokens[..., None], axis=-1)[..., 0]
    lengths = decoded.lengths.reshape(-1, 1)
    total = np.where(np.arange(length) < lengths, gained, 0).sum(-1)
    if isinstance(strategy, BeamSearch):
        total = total / reference.gnmt(lengths[:, 0], 0.6)
        assert (np.diff(decoded.scores) <= 0).all()
    np.testing.assert_allclose(
        decoded.scores.reshape(-1), total, rtol=1e-4, atol=1e-4
    )
    # The constraints hold.
    assert (decoded.tokens[..., 0] == 7).all()
    assert not np.isin(decoded.tokens, [1, 5]).any()
    assert (decoded.lengths >= 3).all()
    for row, number in zip(tokens, lengths[:, 0], strict=True):
        assert (row[:number] != 0).all() and (row[number:] == 0).all()
        assert 2 not in row[: number - 1]


@pytest.mark.parametrize(
    "strategy, top", [("greedy", 1), ("beam", 1), ("sample", 1)]
)
def test_strategies_by_name(model, strategy, top):
    keras.utils.set_random_seed(1)
    by_name = model.generate(SOURCES, max_new_tokens=4, strategy=strategy)
    keras.utils.set_random_seed(1)
    kinds = {"greedy": GreedySearch, "beam": BeamSearch, "sample": Sampling}
    again = model.generate(
        SOURCES, max_new_tokens=4, strategy=kinds[strategy]()
    )
    assert by_name.tokens.shape == (5, top, 4)
    np.testing.assert_array_equal(by_name.tokens, again.tokens)


@every_kind
def test_forcing_the_result_as_prefix_gives_the_same_result(model, name):
    """The first tokens of a result as prefix give the result again."""
    strategy = STRATEGIES[name]()
    if isinstance(strategy, BeamSearch):
        strategy = BeamSearch(3, 1)
    free = model.generate(SOURCES, max_new_tokens=5, strategy=strategy)
    forced = [tokens[tokens > 2][:2].tolist() for tokens in free.tokens[:, 0]]
    again = model.generate(
        SOURCES, max_new_tokens=5, strategy=strategy, prefix=forced
    )
    np.testing.assert_array_equal(again.tokens[:, 0], free.tokens[:, 0])
    np.testing.assert_allclose(again.scores[:, 0], free.scores[:, 0], rtol=1e-5)


def test_prefix_may_be_complete_and_contain_suppressed_tokens():
    tree = Tree.random(2, size=6, length=3)
    sources = np.array([[0], [1]], "int32")
    for strategy in (
        GreedySearch([4]),
        BeamSearch(3, 1, 0, suppress_tokens=[4]),
    ):
        decoded = generate(tree, sources, 3, strategy, prefix=[4, 4, 4])
        assert (decoded.tokens == 4).all() and (decoded.lengths == 3).all()
        expected = [
            sum(tree.log_probs(source, [4] * n)[4] for n in range(3))
            for source in sources
        ]
        np.testing.assert_allclose(decoded.scores[:, 0], expected, rtol=1e-5)


def test_accepted_forms_of_a_prefix():
    tree = Tree.random(2, size=6, length=3)
    sources = np.array([[0], [1]], "int32")

    def tokens(prefix):
        return generate(tree, sources, 3, "greedy", prefix=prefix).tokens

    np.testing.assert_array_equal(tokens([5]), tokens([[5], [5]]))
    np.testing.assert_array_equal(tokens([5]), tokens(np.array([5, 0])))
    np.testing.assert_array_equal(
        tokens([[5, 3], []]), tokens(np.array([[5, 3], [0, 0]]))
    )
    np.testing.assert_array_equal(tokens([[], []]), tokens(None))
    np.testing.assert_array_equal(tokens([]), tokens(None))


@pytest.mark.parametrize(
    "prefix, message",
    [
        ([11], r"`prefix` must lie in \[0, 11\).*\[11\]"),
        ([-1], r"`prefix` must lie in \[0, 11\).*\[-1\]"),
        ([[3]] * 4, "`prefix` must have one row for all, or.*5.*: 4 rows"),
        ([3.5], "`prefix` must hold token ids.*float64"),
        ([[[3]]], "`prefix` must hold token ids"),
        ([3, 0, 4], r"`prefix` must hold no end.*\[0\]"),
        ([3, 2], r"`prefix` must hold no end.*\[2\]"),
        ([1, 3], r"`prefix` must hold no end.*\[1\]"),
        (
            [3] * 5,
            "`prefix` must not be longer than max_new_tokens=4.*5 tokens",
        ),
        (3, "`prefix` must hold token ids.*3"),
    ],
)
def test_invalid_prefixes_raise(model, prefix, message):
    with pytest.raises(ValueError, match=message):
        model.generate(SOURCES, max_new_tokens=4, prefix=prefix)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"suppress_tokens": [11]}, r"`suppress_tokens` must lie in \[0, 11\)"),
        (
            {"suppress_tokens": range(2, 11)},
            "`suppress_tokens` must leave a token",
        ),
        (
            {"min_new_tokens": 5},
            "`min_new_tokens` must not exceed max_new_tokens=4.*=5",
        ),
    ],
)
@every_strategy
def test_unsatisfiable_constraints_raise(model, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.generate(
            SOURCES, max_new_tokens=4, strategy=STRATEGIES[name](**arguments)
        )


def test_source_without_tokens_raises(model):
    with pytest.raises(ValueError, match=r"token in every row.*row 1"):
        model.generate([[5, 6], [0, 0]], max_new_tokens=4)


@every_kind
def test_weights_match_the_returned_sequences(model, name):
    decoded = model.generate(
        SOURCES,
        max_new_tokens=4,
        strategy=STRATEGIES[name](),
        batch_size=2,
        return_weights=True,
    )
    rows, top, length = decoded.tokens.shape
    assert decoded.weights.shape == (rows, top, 2, 2, length, SOURCES.shape[1])
    assert decoded.weights.dtype == "float32"
    paths = [block.cross_attention.path for block in model._decoder_blocks]
    # In one pass: no token depends on later ones.
    tokens = decoded.tokens.reshape(-1, length)
    given = np.concatenate([np.ones_like(tokens[:, :1]), tokens[:, :-1]], 1)
    with keras_attn.ops.capture_weights() as captured:
        model((np.repeat(SOURCES, top, axis=0), given))
    expected = np.stack([to_numpy(captured[p, 0]) for p in paths], axis=1)
    found = decoded.weights.reshape(expected.shape)
    for row, number in enumerate(decoded.lengths.reshape(-1)):
        np.testing.assert_allclose(
            found[row, :, :, :number], expected[row, :, :, :number], atol=1e-5
        )
        assert not found[row, :, :, number:].any()


def test_return_weights_without_align_raises():
    with pytest.raises(ValueError, match=r"`return_weights`.*Markov"):
        generate(
            Markov(np.zeros((1, 4, 4))),
            np.array([[1]]),
            2,
            "greedy",
            return_weights=True,
        )
