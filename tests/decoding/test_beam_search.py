"""BeamSearch against brute force and a reference implementation."""

import functools

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st

from keras_attn.decoding import BeamSearch, GreedySearch, generate
from tests.helpers import decoding_reference as reference
from tests.helpers.cases import once
from tests.helpers.decoding_reference import (
    assert_equals,
    gnmt,
    may_follow,
    power,
)
from tests.helpers.tree import Tree

PENALTIES = {"gnmt": gnmt, "power": power}
# The Python reference takes most of the time of these tests.
TREES = 300 if keras.backend.backend() == "torch" else 120
# JAX and TensorFlow compile a program for each example.
EXAMPLES = 25 if keras.backend.backend() == "torch" else 8


def sources(count):
    return np.arange(count, dtype="int32")[:, None]


def of_every_row(search, model, count, *args, allowed=None, **kwargs):
    """Runs a reference function for every tree."""
    return [
        search(
            functools.partial(model.log_probs, source),
            allowed or may_follow(model),
            *args,
            **kwargs,
        )
        for source in sources(count)
    ]


@pytest.fixture(scope="module")
def forest():
    """300 random models with 6 ids and sequences of up to 4 tokens."""
    return Tree.random(300, size=6, length=4, scale=1.5)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "alpha, penalty",
    [(0.6, "gnmt"), *once([(0.0, "gnmt"), (1.0, "power")])],
)
def test_exhaustive_beam_finds_the_optimum(forest, alpha, penalty):
    strategy = BeamSearch(
        6**4, 3, length_penalty=alpha, length_penalty_type=penalty
    )
    decoded = generate(forest, sources(TREES), 4, strategy, batch_size=60)
    best = of_every_row(
        reference.everything,
        forest,
        TREES,
        4,
        2,
        functools.partial(PENALTIES[penalty], alpha=alpha),
    )
    assert_equals(decoded, best)
    # The models are hard enough: greedy search often misses the optimum.
    greedy = generate(forest, sources(TREES), 4, "greedy").tokens[:, 0]
    missed = (greedy != decoded.tokens[:, 0]).any(-1).mean()
    assert missed >= 0.3, missed


# Each width, penalty and stopping rule on all backends; all combinations on
# one backend.
RULES = [
    (width, top, alpha, penalty, early_stopping)
    for width, top in [(1, 1), (2, 2), (4, 1), (5, 3)]
    for alpha, penalty in [
        (0.0, "gnmt"),
        (0.6, "gnmt"),
        (2.0, "power"),
        (-1.0, "power"),
    ]
    for early_stopping in [False, True]
]
ALL_BACKENDS = [
    (1, 1, 0.6, "gnmt", True),
    (2, 2, 0.0, "gnmt", False),
    (4, 1, -1.0, "power", False),
    (5, 3, 2.0, "power", True),
]


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "width, top, alpha, penalty, early_stopping",
    [
        *ALL_BACKENDS,
        *once(rules for rules in RULES if rules not in ALL_BACKENDS),
    ],
)
def test_equals_the_reference(
    forest, width, top, alpha, penalty, early_stopping
):
    strategy = BeamSearch(width, top, alpha, penalty, early_stopping)
    decoded = generate(forest, sources(100), 4, strategy, batch_size=100)
    expected = of_every_row(
        reference.beam_search,
        forest,
        100,
        4,
        2,
        width,
        top,
        functools.partial(PENALTIES[penalty], alpha=alpha),
        early_stopping,
    )
    assert_equals(decoded, expected)


@pytest.mark.parametrize("alpha", [0.6, *once([0.0, 3.0])])
def test_width_one_is_greedy_search(forest, alpha):
    greedy = generate(forest, sources(300), 4, GreedySearch())
    beam = generate(forest, sources(300), 4, BeamSearch(1, 1, alpha))
    np.testing.assert_array_equal(beam.tokens, greedy.tokens)
    np.testing.assert_array_equal(beam.lengths, greedy.lengths)
    divisor = gnmt(greedy.lengths, alpha)
    np.testing.assert_allclose(
        beam.scores, greedy.scores / divisor, rtol=1e-5, atol=1e-6
    )
    assert len(np.unique(greedy.lengths)) > 2


def test_memory_is_not_copied():
    model = Tree.random(7, size=6, length=3)
    generate(model, sources(7), 3, BeamSearch(4, 2))
    assert model.memory_shapes == {(7,)}


@pytest.mark.captured_steps
def test_loop_is_compiled_once():
    # A single node that is its own child for every token.
    model = Tree(np.zeros((7, 1, 6)), np.zeros((1, 6)))
    strategy = BeamSearch(4, 2, min_new_tokens=12)
    first = generate(model, sources(7), 12, strategy)
    assert (first.lengths == 12).all()
    # PyTorch runs the loop eagerly, but captures the step.
    traced = model.steps
    assert traced < 4
    again = generate(model, sources(7)[::-1], 12, strategy)
    assert model.steps == traced
    np.testing.assert_array_equal(again.tokens, first.tokens)


@pytest.mark.every_backend
@hypothesis.given(
    seed=st.integers(0, 10_000),
    width=st.integers(1, 6),
    alpha=st.floats(-2, 3),
    penalty=st.sampled_from(sorted(PENALTIES)),
    early_stopping=st.booleans(),
    data=st.data(),
)
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_search_equals_the_reference(
    seed, width, alpha, penalty, early_stopping, data
):
    top = data.draw(st.integers(1, width))
    min_new_tokens = data.draw(st.integers(0, 3))
    banned = data.draw(st.sets(st.integers(2, 4), max_size=2))
    prefix = data.draw(st.lists(st.integers(3, 5), max_size=2))
    model = Tree.random(8, size=6, length=3, seed=seed)
    strategy = BeamSearch(
        width, top, alpha, penalty, early_stopping, banned, min_new_tokens
    )
    decoded = generate(model, sources(8), 3, strategy, prefix=prefix)
    expected = of_every_row(
        reference.beam_search,
        model,
        8,
        3,
        2,
        width,
        top,
        functools.partial(PENALTIES[penalty], alpha=alpha),
        early_stopping,
        allowed=may_follow(model, banned, min_new_tokens, prefix),
    )
    assert_equals(decoded, expected)


@pytest.mark.every_backend
@pytest.mark.parametrize("width, top", [(6**4, 3), (1, 1), (2, 2), (5, 3)])
def test_several_end_tokens(width, top):
    ends = 2, 4
    model = Tree.random(60, size=6, length=4, scale=1.5, end_id=ends)
    strategy = BeamSearch(width, top, min_new_tokens=2)
    decoded = generate(model, sources(60), 4, strategy)
    args = () if width > 5 else (width, top)
    search = reference.beam_search if args else reference.everything
    penalty = functools.partial(gnmt, alpha=0.6)
    allowed = may_follow(model, min_new_tokens=2)
    expected = of_every_row(
        search, model, 60, 4, ends, *args, penalty, allowed=allowed
    )
    assert_equals(decoded, expected)
    last = decoded.tokens[decoded.lengths == 3][:, 2]
    assert {*last.tolist()} == {*ends}
    if width == 1:
        greedy = generate(model, sources(60), 4, GreedySearch(min_new_tokens=2))
        np.testing.assert_array_equal(greedy.tokens, decoded.tokens)


def test_the_first_end_token_is_the_padding():
    model = Tree.random(20, size=5, length=3, pad_id=None, end_id=(3, 2))
    decoded = generate(model, sources(20), 3, "greedy")
    for tokens, length in zip(
        decoded.tokens[:, 0], decoded.lengths[:, 0], strict=True
    ):
        assert (tokens[length:] == 3).all()
    assert (decoded.lengths < 3).any()
    with pytest.raises(ValueError, match="`prefix` must hold no end token"):
        generate(model, sources(20), 3, "greedy", prefix=[2])


def test_end_token_equal_to_start_token_can_be_generated():
    model = Tree.random(20, size=5, length=3, start_id=1, end_id=1)
    decoded = generate(model, sources(20), 3, BeamSearch(125, 4))
    penalty = functools.partial(gnmt, alpha=0.6)
    expected = of_every_row(reference.everything, model, 20, 3, 1, penalty)
    assert_equals(decoded, expected)
    assert (decoded.tokens == 1).any()


def test_end_token_equal_to_pad_token_can_be_generated():
    model = Tree.random(20, size=5, length=3, pad_id=0, end_id=0)
    decoded = generate(model, sources(20), 3, BeamSearch(125, 4))
    penalty = functools.partial(gnmt, alpha=0.6)
    expected = of_every_row(reference.everything, model, 20, 3, 0, penalty)
    assert_equals(decoded, expected)
    greedy = generate(model, sources(20), 3, "greedy")
    assert (greedy.lengths < 3).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_beams": 0}, "`num_beams` must be a positive integer.*=0"),
        (
            {"num_return_sequences": 1.5},
            "`num_return_sequences` must be a positive integer.*=1.5",
        ),
        (
            {"num_beams": 2, "num_return_sequences": 3},
            "`num_return_sequences` must not exceed `num_beams`.*sequences=3",
        ),
        ({"length_penalty": np.nan}, "`length_penalty` must be a finite"),
        ({"length_penalty": "gnmt"}, "`length_penalty` must be a finite"),
        (
            {"length_penalty_type": "wu"},
            "`length_penalty_type` must be one of 'gnmt', 'power'.*'wu'",
        ),
        ({"early_stopping": "never"}, "`early_stopping` must be one of"),
        ({"suppress_tokens": [1.5]}, "`suppress_tokens` must hold.*1.5"),
        (
            {"min_new_tokens": -1},
            "`min_new_tokens` must be an integer >= 0.*=-1",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        BeamSearch(**arguments)


def test_penalty_overflow_in_float32_raises():
    model = Tree.random(1, size=4, length=2)
    strategy = BeamSearch(2, length_penalty=200.0, length_penalty_type="power")
    with pytest.raises(ValueError, match=r"`length_penalty` must give.*=200"):
        generate(model, sources(1), 2, strategy)


def test_config_round_trips():
    strategy = BeamSearch(5, 3, 0.8, "power", True, [7, 8], 4)
    config = keras.saving.serialize_keras_object(strategy)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, BeamSearch)
    assert again.get_config() == strategy.get_config()
    assert again.get_config() == {
        "num_beams": 5,
        "num_return_sequences": 3,
        "length_penalty": 0.8,
        "length_penalty_type": "power",
        "early_stopping": True,
        "coverage_penalty": 0.0,
        "suppress_tokens": [7, 8],
        "min_new_tokens": 4,
        "rules": [],
    }
