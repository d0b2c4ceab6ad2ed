"""ConstrainedBeamSearch against a search with lists and the optimum."""

import functools

import keras
import numpy as np
import pytest

from keras_attn.decoding import (
    BeamSearch,
    ConstrainedBeamSearch,
    ForcedWords,
    RepetitionPenalty,
    generate,
    stream,
)
from keras_attn.text import CharacterTokenizer
from tests.helpers.cases import once
from tests.helpers.decoding_reference import (
    assert_equals,
    everything,
    gnmt,
    may_follow,
)
from tests.helpers.tree import Tree

COUNT, LENGTH = 16, 5
SOURCES = np.arange(COUNT, dtype="int32")[:, None]
WORDS = [[4, 5], [3]]
GNMT = functools.partial(gnmt, alpha=0.6)


@pytest.fixture(scope="module")
def forest():
    return Tree.random(COUNT, size=6, length=LENGTH, scale=1.5)


def occurs(word, tokens):
    starts = range(len(tokens) - len(word) + 1)
    return any(tokens[i : i + len(word)] == word for i in starts)


def missing(words, tokens):
    """Returns how many tokens of the words a sequence still needs."""
    lacking = [word for word in words if not occurs(word, tokens)]
    begun = [
        length
        for word in lacking
        for length in range(1, len(word))
        if tokens[-length:] == word[:length]
    ]
    return sum(map(len, lacking)) - max(begun, default=0)


def constrained_beam_search(
    log_probs,
    allowed,
    words,
    width,
    top,
    divisor,
    early_stopping=False,
    stops=lambda tokens: False,
    end_id=2,
):
    """Fills the grid of Hokamp and Liu, one hypothesis at a time."""
    banks = range(1 + sum(map(len, words)))
    live, finished = [(0.0, [])], []
    for length in range(1, LENGTH + 1):
        of_bank = {bank: [] for bank in banks}
        for score, tokens in live:
            for token in allowed(tokens):
                longer = [*tokens, token]
                bank = missing(words, longer)
                ended = token == end_id or stops(longer)
                if bank <= LENGTH - length and not (ended and bank):
                    total = score + log_probs(tokens)[token]
                    of_bank[bank].append((total, longer))
        live = []
        for bank in banks:
            kept = []
            of_bank[bank].sort(key=lambda pair: -pair[0])
            for rank, (score, tokens) in enumerate(of_bank[bank]):
                if length == LENGTH or tokens[-1] == end_id or stops(tokens):
                    if rank < width:
                        finished.append((score / divisor(length), tokens))
                elif len(kept) < width:
                    kept.append((score, tokens))
            finished.sort(key=lambda pair: -pair[0])
            finished = finished[:top]
            if len(finished) == top and kept:
                best = max(
                    kept[0][0] / divisor(later)
                    for later in range(length + 1, LENGTH + 1)
                )
                if early_stopping or best <= finished[-1][0]:
                    continue
            live.extend(kept)
    return finished


def by_lists(model, *args, allowed=None, **kwargs):
    return [
        constrained_beam_search(
            functools.partial(model.log_probs, source),
            allowed or may_follow(model),
            *args,
            **kwargs,
        )
        for source in SOURCES
    ]


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "words, width, top, early_stopping",
    [
        (WORDS, 2, 2, False),
        *once(
            [
                (WORDS, 1, 1, False),
                ([[3, 4, 3], [4, 3]], 3, 2, False),
                ([[5]], 3, 3, True),
            ]
        ),
    ],
)
def test_equals_the_reference(forest, words, width, top, early_stopping):
    strategy = ConstrainedBeamSearch(
        words, width, top, early_stopping=early_stopping
    )
    found = generate(forest, SOURCES, LENGTH, strategy)
    args = words, width, top, GNMT, early_stopping
    assert_equals(found, by_lists(forest, *args))
    for row in found.tokens:
        for tokens in row.tolist():
            assert not missing(words, tokens)


@pytest.mark.one_backend
def test_enough_beams_find_the_optimum():
    forest = Tree.random(6, size=6, length=4, scale=1.5)
    strategy = ConstrainedBeamSearch(WORDS, 4**3, 3)
    found = generate(forest, SOURCES[:6], 4, strategy)
    expected = [
        [
            (score, tokens)
            for score, tokens in everything(
                functools.partial(forest.log_probs, source),
                may_follow(forest),
                *(4, 2, GNMT),
            )
            if not missing(WORDS, tokens)
        ]
        for source in SOURCES[:6]
    ]
    assert_equals(found, expected)


@pytest.mark.one_backend
def test_finds_more_likely_sequences_than_the_rule(forest):
    ours = ConstrainedBeamSearch(WORDS, 2, length_penalty=0.0)
    rule = BeamSearch(2, length_penalty=0.0, rules=[ForcedWords(WORDS)])
    found = generate(forest, SOURCES, LENGTH, ours).scores[:, 0]
    forced = generate(forest, SOURCES, LENGTH, rule).scores[:, 0]
    assert (found > forced + 1e-4).sum() > 2 * (found < forced - 1e-4).sum()
    assert found.mean() > forced.mean()


@pytest.mark.one_backend
def test_other_constraints(forest):
    tokenizer = CharacterTokenizer("ab")  # the ids 4 and 5
    strategy = ConstrainedBeamSearch(
        [[3]], 3, 2, 0.0, suppress_tokens=[2], rules=[RepetitionPenalty(1.0)]
    )
    found = generate(
        forest,
        SOURCES,
        LENGTH,
        strategy,
        prefix=[5],
        stop_strings=["ba"],
        tokenizer=tokenizer,
    )
    expected = by_lists(
        forest,
        *([[3]], 3, 2, lambda n: 1.0),
        allowed=may_follow(forest, [2], prefix=[5]),
        stops=lambda tokens: "ba" in tokenizer.decode(tokens),
    )
    assert_equals(found, expected)
    assert (found.lengths < LENGTH).any()


@pytest.mark.one_backend
def test_streams_all_banks(forest):
    strategy = ConstrainedBeamSearch(WORDS, 2)
    *_, last = items = list(stream(forest, SOURCES, LENGTH, strategy))
    assert items[0].active.tokens.shape == (COUNT, 8, LENGTH)
    found = generate(forest, SOURCES, LENGTH, strategy)
    np.testing.assert_array_equal(last.tokens, found.tokens)


@pytest.mark.one_backend
def test_invalid_arguments_raise(forest):
    with pytest.raises(ValueError, match="`words` must be a list"):
        ConstrainedBeamSearch([])
    with pytest.raises(ValueError, match=r"`words` of .*Received: 7 tokens"):
        generate(forest, SOURCES, LENGTH, ConstrainedBeamSearch([[3] * 7]))
    with pytest.raises(ValueError, match="`words` must hold no padding"):
        generate(forest, SOURCES, LENGTH, ConstrainedBeamSearch([[2]]))


@pytest.mark.one_backend
def test_config_round_trips():
    strategy = ConstrainedBeamSearch(WORDS, 3, 2, coverage_penalty=0.1)
    config = keras.saving.serialize_keras_object(strategy)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, ConstrainedBeamSearch)
    assert again.get_config() == strategy.get_config()
    assert again.words == ((4, 5), (3,)) and again.num_hypotheses == 12
