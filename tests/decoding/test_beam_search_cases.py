"""BeamSearch on small trees with hand-computed results."""

import numpy as np
import pytest

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling, generate
from tests.helpers.tree import Tree

ONE = np.zeros((1, 1), "int32")
STRATEGIES = [
    GreedySearch(),
    BeamSearch(3, 2),
    Sampling(seed=0, num_return_sequences=2),
    Sampling(seed=0, top_k=2, top_p=0.5),
]


def result(decoded):
    """Returns [(tokens without padding, score)] of the first source."""
    return [
        (tokens[:length].tolist(), round(float(score), 4))
        for tokens, score, length in zip(
            decoded.tokens[0],
            decoded.scores[0],
            decoded.lengths[0],
            strict=True,
        )
    ]


def test_finished_hypothesis_keeps_its_score():
    """The best one has ended (0.588); the active one reaches 0.130."""
    tree = Tree.of(
        {
            (): {2: 0.588, 3: 0.4},
            (3,): {3: 0.65, 2: 0.2},
            (3, 3): {3: 0.5, 2: 0.4},
            # Reached only by a search that extends finished hypotheses.
            (2,): {4: 1e-4},
            (2, 4): {4: 1e-4},
        },
        size=5,
    )
    for width in (2, 3):
        search = BeamSearch(width, 2, length_penalty=0)
        (best, score), (second, other) = result(generate(tree, ONE, 3, search))
        assert best == [2] and score == round(np.log(0.588), 4)
        assert second == [3, 3, 3] and other == round(np.log(0.13), 4)


def test_length_penalty_changes_the_best_hypothesis():
    tree = Tree.of(
        {
            (): {2: 0.588, 3: 0.4},
            (3,): {3: 0.9},
            (3, 3): {2: 0.9},
        },
        size=5,
    )
    search = BeamSearch(2, 2, length_penalty=1.0, length_penalty_type="power")
    (best, score), (second, other) = result(generate(tree, ONE, 6, search))
    assert best == [3, 3, 2] and score == round(np.log(0.324) / 3, 4)
    assert second == [2] and other == round(np.log(0.588), 4)
    search = BeamSearch(2, 1, 1.0, "power", early_stopping=True)
    assert result(generate(tree, ONE, 6, search))[0][0] == [2]


def test_lecture_example_with_two_beams():
    """A tree after the slide "beam size k = 2" of Stanford's CS224n.

    Each number is the log-probability of all words so far.
    """
    words = "he I hit struck was got me a tart pie with on in one".split()
    ids = {word: number for number, word in enumerate(words, start=3)}
    slide = {
        "he": -0.7,
        "I": -0.9,
        "he hit": -1.7,
        "he struck": -2.9,
        "I was": -1.6,
        "I got": -1.8,
        "he hit a": -2.8,
        "he hit me": -2.5,
        "I was hit": -2.9,
        "I was struck": -3.8,
        "he hit a tart": -4.0,
        "he hit a pie": -3.4,
        "he hit me with": -3.3,
        "he hit me on": -3.5,
        "he hit a pie with": -4.5,
        "he hit a pie in": -4.8,
        "he hit me with a": -3.7,
        "he hit me with one": -4.3,
        "he hit me with a tart": -4.6,
        "he hit me with a pie": -4.3,
        "he hit me with one pie": -5.0,
        "he hit me with one tart": -5.3,
    }
    probabilities = {(): {}}
    for text, score in slide.items():
        *before, word = text.split()
        gained = score - slide.get(" ".join(before), 0.0)
        before = tuple(ids[name] for name in before)
        probabilities.setdefault(before, {})[ids[word]] = np.exp(gained)
    tree = Tree.of(probabilities, size=len(words) + 3)
    search = BeamSearch(2, 2, length_penalty=0)
    decoded = generate(tree, ONE, 6, search)
    found = [
        " ".join(words[token - 3] for token in tokens)
        for tokens in decoded.tokens[0]
    ]
    assert found == ["he hit me with a pie", "he hit me with a tart"]
    # The slide rounds: after "with", p("a") + p("one") is 1.04.
    np.testing.assert_allclose(decoded.scores[0], [-4.3, -4.6], atol=0.05)
    # A hypothesis that is pruned later is first after two steps.
    two = generate(tree, ONE, 2, search).tokens[0].tolist()
    assert two == [[ids["I"], ids["was"]], [ids["he"], ids["hit"]]]
    greedy = generate(tree, ONE, 2, "greedy").tokens[0].tolist()
    assert greedy == [[ids["he"], ids["hit"]]]


def test_more_beams_than_sequences():
    tree = Tree.of({(): {2: 0.5, 3: 0.3}, (3,): {2: 0.5}}, size=4)
    found = generate(tree, ONE, 4, BeamSearch(8, 4, length_penalty=0))
    assert result(found) == [
        ([2], round(np.log(0.5), 4)),
        ([3, 2], round(np.log(0.15), 4)),
        ([], -np.inf),
        ([], -np.inf),
    ]
    assert not found.tokens[0, 2:].any()


def test_unfinished_hypotheses_are_ranked_with_finished_ones():
    tree = Tree.of({(): {2: 0.2, 3: 0.7}, (3,): {3: 0.6}}, size=5)
    found = generate(tree, ONE, 2, BeamSearch(3, 3, length_penalty=0))
    assert result(found) == [
        ([3, 3], round(np.log(0.42), 4)),
        ([2], round(np.log(0.2), 4)),
        ([], -np.inf),
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stops_as_soon_as_all_rows_are_done(strategy):
    """In the step after, every logit is NaN."""
    tree = Tree.of({(): {3: 1.0}, (3,): {2: 1.0}}, size=4)
    found = result(generate(tree, np.repeat(ONE, 3, 0), 9, strategy))
    assert found[0] == ([3, 2], 0.0)
    assert all(np.isfinite(score) or not tokens for tokens, score in found)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_sequence_if_no_token_is_allowed(strategy):
    tree = Tree.of({(): {3: 0.9}, (3,): {}}, size=4)
    found = generate(tree, ONE, 3, strategy)
    assert not found.tokens.any() and not found.lengths.any()
    assert (found.scores == -np.inf).all()


def test_ties_are_broken_by_order_on_every_backend():
    """With equal logits, the lowest ids and the first to end win."""
    tree = Tree(np.zeros((1, 1, 40)), np.zeros((1, 40)))
    strategy = BeamSearch(5, 3, length_penalty=0, min_new_tokens=2)
    greedy = generate(tree, ONE, 3, GreedySearch(min_new_tokens=2))
    found = generate(tree, ONE, 3, strategy)
    assert result(greedy)[0][0] == [3, 2]
    assert [tokens for tokens, _ in result(found)] == [
        [3, 2],
        [3, 3, 2],
        [3, 3, 3],
    ]
    one = generate(tree, ONE, 3, BeamSearch(1, min_new_tokens=2))
    np.testing.assert_array_equal(one.tokens, greedy.tokens)
