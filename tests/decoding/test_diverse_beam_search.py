"""DiverseBeamSearch against a search with lists."""

import collections
import functools

import keras
import numpy as np
import pytest

from keras_attn.decoding import (
    BeamSearch,
    DiverseBeamSearch,
    MinP,
    generate,
    stream,
)
from keras_attn.text import CharacterTokenizer
from tests.helpers.cases import once
from tests.helpers.decoding_reference import (
    assert_equals,
    beam_search,
    gnmt,
    may_follow,
    power,
)
from tests.helpers.tree import Tree

COUNT, LENGTH = 24, 4
SOURCES = np.arange(COUNT, dtype="int32")[:, None]
PENALTIES = {"gnmt": gnmt, "power": power}


@pytest.fixture(scope="module")
def forest():
    return Tree.random(COUNT, size=6, length=LENGTH, scale=1.5)


def diverse_beam_search(
    log_probs,
    allowed,
    num_beams,
    top,
    groups,
    penalty,
    divisor,
    early_stopping=False,
    stops=lambda tokens: False,
    end_id=2,
    bonus=lambda tokens: 0.0,
):
    """Implements algorithm 1 of the paper, one hypothesis at a time."""
    width = num_beams // groups
    kept_of_group = min(top, width)
    live = [[(0.0, [])] for _ in range(groups)]
    finished = [[] for _ in range(groups)]
    for length in range(1, LENGTH + 1):
        counts = collections.Counter()
        for group in range(groups):
            candidates = [
                (
                    score + log_probs(tokens)[token] - penalty * counts[token],
                    [*tokens, token],
                )
                for score, tokens in live[group]
                for token in allowed(tokens)
            ]
            candidates.sort(key=lambda pair: -pair[0])
            following, kept = [], []
            for rank, (score, tokens) in enumerate(candidates):
                ended = tokens[-1] == end_id or stops(tokens)
                if length == LENGTH or ended:
                    if rank < width:
                        value = score / divisor(length) + bonus(tokens)
                        finished[group].append((value, tokens))
                elif len(following) < width:
                    following.append((score, tokens))
            if length == LENGTH:
                kept = candidates[:width]
            else:
                kept = following
            done = sorted(finished[group], key=lambda pair: -pair[0])
            finished[group] = done[:kept_of_group]
            if len(finished[group]) == kept_of_group and following:
                best = max(
                    score / divisor(later)
                    for score, _ in following
                    for later in range(length + 1, LENGTH + 1)
                )
                if (
                    early_stopping
                    or width == 1
                    or best <= finished[group][-1][0]
                ):
                    following = []
            live[group] = following
            counts.update(tokens[-1] for _, tokens in kept)
    found = [pair for group in finished for pair in group]
    return sorted(found, key=lambda pair: -pair[0])[:top]


def by_lists(model, *args, allowed=None, **kwargs):
    return [
        diverse_beam_search(
            functools.partial(model.log_probs, source),
            allowed or may_follow(model),
            *args,
            **kwargs,
        )
        for source in SOURCES
    ]


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "width, top, groups, penalty, kind, early_stopping",
    [
        (6, 6, 3, 0.7, "gnmt", False),
        *once(
            [
                (4, 4, 4, 1.5, "gnmt", False),
                (6, 2, 2, 0.4, "power", True),
                (6, 1, 3, 9.0, "power", False),
                (4, 3, 2, 0.0, "gnmt", False),
            ]
        ),
    ],
)
def test_equals_the_reference(
    forest, width, top, groups, penalty, kind, early_stopping
):
    strategy = DiverseBeamSearch(
        width,
        top,
        0.6,
        kind,
        early_stopping,
        num_beam_groups=groups,
        diversity_penalty=penalty,
    )
    found = generate(forest, SOURCES, LENGTH, strategy, batch_size=COUNT)
    divisor = functools.partial(PENALTIES[kind], alpha=0.6)
    args = width, top, groups, penalty, divisor, early_stopping
    assert_equals(found, by_lists(forest, *args))
    if top == width:
        plain = BeamSearch(width, top, 0.6, kind, early_stopping)
        plain = generate(forest, SOURCES, LENGTH, plain, batch_size=COUNT)
        assert (found.tokens != plain.tokens).any(axis=(1, 2)).mean() > 0.5


@pytest.mark.one_backend
def test_constraints_and_stop_strings_equal_the_reference(forest):
    strategy = DiverseBeamSearch(
        4, 4, 0.0, suppress_tokens=[3], min_new_tokens=3, diversity_penalty=0.8
    )
    tokenizer = CharacterTokenizer("ab")  # the ids 4 and 5
    assert tokenizer.decode([4, 5]) == "ab"
    prefix = [5]
    found = generate(
        forest,
        SOURCES,
        LENGTH,
        strategy,
        prefix=prefix,
        stop_strings=["ba"],
        tokenizer=tokenizer,
    )
    expected = by_lists(
        forest,
        *(4, 4, 2, 0.8, lambda n: 1.0),
        allowed=may_follow(forest, [3], 3, prefix),
        stops=lambda tokens: "ba" in tokenizer.decode(tokens),
    )
    assert_equals(found, expected)
    assert (found.lengths == 2).any()


@pytest.mark.every_backend
@pytest.mark.parametrize("rules", [(), *once([[MinP(0.2)]])])
def test_one_group_is_plain_beam_search(forest, rules):
    one = DiverseBeamSearch(3, 2, rules=rules, num_beam_groups=1)
    found = generate(forest, SOURCES, LENGTH, one)
    plain = generate(forest, SOURCES, LENGTH, BeamSearch(3, 2, rules=rules))
    for ours, theirs in zip(found[:3], plain[:3], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.one_backend
def test_without_a_penalty_the_groups_are_equal(forest):
    strategy = DiverseBeamSearch(
        6, 6, 0.0, num_beam_groups=3, diversity_penalty=0
    )
    found = generate(forest, SOURCES, LENGTH, strategy)
    single = [
        beam_search(
            functools.partial(forest.log_probs, source),
            may_follow(forest),
            *(LENGTH, 2, 2, 2),
        )
        for source in SOURCES
    ]
    thrice = [[pair for pair in row for _ in range(3)] for row in single]
    assert_equals(found, thrice)


@pytest.mark.one_backend
def test_fewer_continuations_than_beams():
    tree = Tree.of({(): {3: 0.6, 4: 0.4}, (3,): {2: 1}, (4,): {2: 1}}, size=5)
    strategy = DiverseBeamSearch(
        4, 4, 0.0, num_beam_groups=2, diversity_penalty=1.0
    )
    found = generate(tree, SOURCES[:1], 3, strategy)
    # The first group keeps both, and the end tokens are not penalized.
    scores = np.log([0.6, 0.4, 0.6 / np.e, 0.4 / np.e])
    np.testing.assert_allclose(
        np.sort(found.scores[0])[::-1], np.sort(scores)[::-1], rtol=1e-5
    )


@pytest.mark.one_backend
def test_streams_the_active_hypotheses_of_all_groups():
    forest = Tree.random(1, size=8, length=LENGTH)
    strategy = DiverseBeamSearch(
        4, 2, num_beam_groups=2, diversity_penalty=50.0
    )
    *_, last = items = list(stream(forest, SOURCES[:1], LENGTH, strategy))
    found = generate(forest, SOURCES[:1], LENGTH, strategy)
    np.testing.assert_array_equal(last.tokens, found.tokens)
    first, second = items[0].active, items[1].active
    assert first.tokens.shape == (1, 4, LENGTH)
    tokens = first.tokens[0, :, 0].tolist()
    assert len({*tokens}) == len(tokens)
    assert (second.parents[0, :2] < 2).all()
    assert (second.parents[0, 2:] >= 2).all()
    for beam, parent in enumerate(second.parents[0]):
        assert second.tokens[0, beam, 0] == tokens[parent]


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_beam_groups": 3}, "`num_beam_groups` must divide.*=3, num_b"),
        ({"num_beam_groups": 0}, "`num_beam_groups` must be a pos.*=0"),
        ({"diversity_penalty": -1.0}, "`diversity_penalty` must be.*=-1.0"),
        ({"diversity_penalty": "a"}, "`diversity_penalty` must be"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        DiverseBeamSearch(4, **arguments)


@pytest.mark.one_backend
def test_config_round_trips():
    strategy = DiverseBeamSearch(
        6, 2, rules=[MinP(0.1)], num_beam_groups=3, diversity_penalty=0.3
    )
    config = keras.saving.serialize_keras_object(strategy)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, DiverseBeamSearch)
    assert again.get_config() == strategy.get_config()
    assert again.num_beam_groups == 3 and again.diversity_penalty == 0.3
