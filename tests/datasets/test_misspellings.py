"""Misspelled words."""

import collections

import numpy as np
import pytest

from keras_attn.datasets import (
    make_misspellings,
    misspell,
    misspellings,
    spelling_words,
)
from keras_attn.datasets.spelling import noise
from keras_attn.datasets.stable_random import StableRandom
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

SPLITS = {
    "train": "2c3c29fed7431128",
    "validation": "b1d146be1f702f40",
    "test": "2bd536b01dfc48d2",
}
KNOWN = {word for split in SPLITS for word in spelling_words(split)}


@pytest.mark.parametrize("split", SPLITS)
def test_misspellings_of_a_split(split):
    words = {word for word in spelling_words(split) if len(word) > 2}
    found = make_misspellings(len(words), seed=2, split=split)
    assert digest(found) == SPLITS[split]
    # Each word once.
    assert {right for _, right in found} == words
    for wrong, right in found:
        assert wrong and wrong not in KNOWN
        assert -2 <= len(wrong) - len(right) <= 2
    again = make_misspellings(20, seed=2, split=split)
    other = make_misspellings(20, seed=3, split=split)
    assert found[:20] == again != other


def test_own_words():
    words = ["naïve", "in", "their", "a lot", "ther"]
    epochs = [make_misspellings(50, seed=s, words=words) for s in range(2)]
    assert epochs[0] != epochs[1]
    for epoch in epochs:
        for start in range(0, 50, 5):
            rights = [right for _, right in epoch[start : start + 5]]
            assert sorted(rights) == sorted(words)
        for wrong, right in epoch:
            assert (wrong == right) == (right == "in")
            assert wrong == "in" or wrong not in {*words, *KNOWN}


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_unchanged_words(rate):
    found = make_misspellings(1000, unchanged_rate=rate)
    rights = [right for _, right in found]
    assert abs(np.mean([w == r for w, r in found]) - rate) < 0.06
    if rate == 0:
        assert rights[0] == make_misspellings(1, unchanged_rate=1.0)[0].right


def changes(wrong, right):
    """Names the one error that makes `wrong` of `right`, or "several"."""
    for kind, longer, shorter in (
        ("removed", right, wrong),
        ("added", wrong, right),
    ):
        for i, letter in enumerate(longer):
            if longer[:i] + longer[i + 1 :] == shorter:
                beside = longer[i - 1 : i] + longer[i + 1 : i + 2]
                return f"{kind} double" if letter in beside else kind
    if len(wrong) == len(right):
        differ = [i for i, c in enumerate(right) if wrong[i] != c]
        if len(differ) == 1:
            return "changed"
        swapped = wrong[differ[0]] == right[differ[-1]]
        if len(differ) == 2 and swapped and differ[1] == differ[0] + 1:
            return "swapped"
    return "several"


def test_frequencies_of_errors():
    assert sum(noise.KINDS.values()) == 100
    words = [misspell("accommodate", seed=seed) for seed in range(2000)]
    assert digest(words) == "4585223ef4130fe2"
    assert 0.01 < np.mean([word[0] != "a" for word in words]) < 0.06
    kinds = collections.Counter(changes(word, "accommodate") for word in words)
    rates = {kind: count / 2000 for kind, count in kinds.items()}
    removed = rates.pop("removed") + rates.pop("removed double")
    added = rates.pop("added") + rates.pop("added double")
    assert set(rates) == {"changed", "swapped", "several"}
    # Two errors have a rate of 0.2, and a few of them cancel out. Another
    # spelling of a sound may also add or change a letter.
    assert 0.13 < rates["several"] < 0.23
    assert abs(removed - 0.8 * 0.31) < 0.03
    assert abs(rates["swapped"] - 0.8 * 0.15) < 0.03
    assert -0.03 < added - 0.8 * 0.21 < 0.06
    assert -0.03 < rates["changed"] - 0.8 * 0.21 < 0.1


def test_errors_that_a_word_cannot_have():
    random = StableRandom(2)
    for name, error in noise._ERRORS.items():
        found = {error("weather", 1, random) for _ in range(50)}
        assert (found == {None}) == (name == "single"), name
        assert "weather" not in found
    assert noise._single("letter", 1, random) == "leter"
    assert noise._omission("ab", 0, random) is None


def test_neighboring_keys():
    near = noise._NEIGHBORS
    assert near["a"] == "qswz" and near["g"] == "bfhtvy" and len(near) == 26
    for letter, others in near.items():
        assert all(letter in near[other] for other in others)


def test_known_words_are_no_misspellings():
    found = {misspell("cat", seed=seed) for seed in range(300)}
    known = found - {"ct"}
    for seed in range(9):
        assert misspell("cat", seed=seed, known_words=known) not in known


def test_words_without_misspellings_raise(monkeypatch):
    monkeypatch.setattr(misspellings, "add_errors", lambda word, random: "cat")
    with pytest.raises(ValueError, match=r"must have a misspelling.*'cat'"):
        misspell("cat")
    with pytest.raises(ValueError, match=r"must have a misspelling.*'dog'"):
        make_misspellings(1, words=["dog"])


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: make_misspellings(-1), "`n` must be at least 0"),
        (lambda: make_misspellings(1, seed=0.5), "`seed` must be an integer"),
        (lambda: make_misspellings(1, split="x"), "`split` must be one of"),
        (lambda: make_misspellings(1, words="word"), "`words` must be a list"),
        (lambda: make_misspellings(1, words=["a", 3]), "`words` must be a lis"),
        (lambda: make_misspellings(1, words=[]), "`words` must have at least"),
        (
            lambda: make_misspellings(1, words=["word"], split="test"),
            "`split` must be 'train' with `words`",
        ),
        (
            lambda: make_misspellings(1, unchanged_rate=2),
            "`unchanged_rate` mus",
        ),
        (lambda: misspell("in"), "`word` must have at least 3.*'in'"),
        (lambda: misspell(None), "`word` must be a str"),
        (lambda: misspell("word", known_words=3), "`known_words` must be"),
    ],
)
def test_invalid_arguments_raise(call, said):
    with pytest.raises(ValueError, match=said):
        call()
