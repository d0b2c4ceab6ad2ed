"""Misspelled words, and the lexicon, forms and families they come from."""

import re

import numpy as np
import pytest

from keras_attn.datasets import (
    make_misspellings,
    misspell,
    misspellings,
    spelling_words,
    word_stem,
)
from keras_attn.datasets.spelling import english_forms, lexicon, noise
from keras_attn.datasets.spelling.families import families
from keras_attn.datasets.stable_random import StableRandom
from tests.helpers.digest import digest

SPLITS = "train", "validation", "test"
WORDS = [word for split in SPLITS for word in spelling_words(split)]


def test_words_are_well_formed():
    assert digest(WORDS) == "a8b54c86f78a6cb2"
    assert len(WORDS) == len(set(WORDS)) == 4817
    assert all(re.fullmatch("[a-z]{1,18}", word) for word in WORDS)
    # No rule may produce these.
    wrong = re.compile(r"(.)\1\1|ii|[^aeo]yed$|[^aeiou]ys$|[^aeiouw]y(er|est)$")
    assert not [word for word in WORDS if wrong.search(word)]
    for name in ("VERBS", "NOUNS", "MASS_NOUNS", "ADJECTIVES"):
        table = getattr(lexicon, name).split()
        assert table == sorted(set(table)), name


def test_families_are_held_out_as_a_whole():
    sizes = [len(spelling_words(split)) for split in SPLITS]
    assert sizes == [4396, 185, 236]
    stems = [{*map(word_stem, spelling_words(split))} for split in SPLITS]
    assert sum(map(len, stems)) == len(set().union(*stems))
    splits = {word: s for s in SPLITS for word in spelling_words(s)}
    for family in families():
        assert len({splits[word] for word in family}) == 1
    (family,) = (one for one in families() if "write" in one)
    assert {"write", "wrote", "written", "writing", "writer"} <= set(family)
    # A caller may change the list.
    spelling_words().clear()
    assert len(spelling_words()) == 4396


def test_forms_and_stems():
    rules = english_forms.with_s, english_forms.with_ed, english_forms.with_ing
    for line in """permit permits permitted permitting
        offer offers offered offering
        apply applies applied applying
        destroy destroys destroyed destroying
        fix fixes fixed fixing
        travel travels traveled traveling
        quit quits quitted quitting""".splitlines():
        verb, *forms = line.split()
        assert [rule(verb) for rule in rules] == forms
    for words in ("calculator Calculations miscalculate", "unhappy happy"):
        assert len({*map(word_stem, words.split())}) == 1, words
    assert word_stem("a lot") == "lot"
    assert len({*map(word_stem, ("library", "window", "run"))}) == 3


@pytest.mark.parametrize("split", SPLITS)
def test_misspellings_of_a_split(split):
    words = {word for word in spelling_words(split) if len(word) > 2}
    found = make_misspellings(len(words), seed=2, split=split)
    # Each word once.
    assert {right for _, right in found} == words
    assert {*WORDS, ""}.isdisjoint(wrong for wrong, _ in found)
    assert all(-2 <= len(wrong) - len(right) <= 2 for wrong, right in found)


def test_own_words():
    words = ["naïve", "in", "their", "a lot", "ther"]
    found = make_misspellings(50, words=words)
    for start in range(0, 50, 5):
        rights = [right for _, right in found[start : start + 5]]
        assert sorted(rights) == sorted(words)
    for wrong, right in found:
        assert (wrong == right) == (right == "in")
        assert wrong == "in" or wrong not in {*words, *WORDS}
    for rate in (0.0, 0.3, 1.0):
        found = make_misspellings(1000, unchanged_rate=rate)
        assert abs(np.mean([w == r for w, r in found]) - rate) < 0.06
        # The order of the words does not depend on the rate.
        assert found[0].right == make_misspellings(1)[0].right


def test_errors():
    random, word = StableRandom(2), "weather"
    found = {
        name: {error(word, 1, random) for _ in range(300)}
        for name, error in noise._ERRORS.items()
    }
    # The first letter is spared.
    parts = [(word[:i], word[i], word[i + 1 :]) for i in range(1, 7)]
    vowels, keys = dict.fromkeys("ea", "aeiou"), noise._NEIGHBORS
    assert keys["a"] == "qswz" and keys["g"] == "bfhtvy" and len(keys) == 26
    assert all(a in keys[b] for a, others in keys.items() for b in others)
    swapped = {a + c[0] + b + c[1:] for a, b, c in parts[:-1]}
    assert found["transposition"] == swapped
    assert found["omission"] == {a + c for a, _, c in parts}
    assert found["doubling"] == {a + b + b + c for a, b, c in parts}
    for kind, others in (("keyboard", keys), ("vowel", vowels)):
        changed = {a + o + c for a, b, c in parts for o in others.get(b, "")}
        assert found[kind] == changed - {word}
    assert {"weether", "weathar"} <= found["sound"]
    assert found["single"] == {None}
    assert noise._single("letter", 1, random) == "leter"
    assert noise._omission("ab", 0, random) is None


def test_frequencies_of_errors():
    assert sum(noise.KINDS.values()) == 100
    right = "accommodate"
    words = [misspell(right, seed=seed) for seed in range(2000)]
    assert digest(words) == "4585223ef4130fe2"
    assert 0.01 < np.mean([word[0] != "a" for word in words]) < 0.06
    # One error in 80 % of the words: 31 % of the errors omit a letter, 15 %
    # swap two.
    shorter = {right[:i] + right[i + 1 :] for i in range(len(right))}
    assert abs(np.mean([word in shorter for word in words]) - 0.8 * 0.31) < 0.03
    swapped = [sorted(word) == sorted(right) for word in words]
    assert abs(np.mean(swapped) - 0.8 * 0.15) < 0.03


def test_known_words_are_no_misspellings(monkeypatch):
    known = {misspell("cat", seed=seed) for seed in range(300)} - {"ct"}
    for seed in range(9):
        assert misspell("cat", seed=seed, known_words=known) not in known
    monkeypatch.setattr(misspellings, "add_errors", lambda word, random: "cat")
    with pytest.raises(ValueError, match=r"must have a misspelling.*'cat'"):
        misspell("cat")
    with pytest.raises(ValueError, match=r"must have a misspelling.*'dog'"):
        make_misspellings(1, words=["dog"])
