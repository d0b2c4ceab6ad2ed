"""The words of the spelling data, their forms and families."""

import itertools
import re

import pytest

from keras_attn.datasets import spelling_words, word_stem
from keras_attn.datasets.spelling import english_forms, lexicon
from keras_attn.datasets.spelling.families import families
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

SPLITS = ("train", "validation", "test")


def test_words_are_well_formed():
    words = list(itertools.chain(*map(spelling_words, SPLITS)))
    assert digest(words) == "a8b54c86f78a6cb2"
    assert len(words) == len(set(words)) == 4817
    assert all(re.fullmatch("[a-z]{1,18}", word) for word in words)
    # No rule may produce these.
    wrong = re.compile(r"(.)\1\1|ii|[^aeo]yed$|[^aeiou]ys$|[^aeiouw]y(er|est)$")
    assert not [word for word in words if wrong.search(word)]
    for name in ("VERBS", "NOUNS", "MASS_NOUNS", "ADJECTIVES"):
        table = getattr(lexicon, name).split()
        assert table == sorted(set(table)), name


def test_families_are_held_out_as_a_whole():
    stems = [{*map(word_stem, spelling_words(split))} for split in SPLITS]
    assert sum(map(len, stems)) == len(set().union(*stems))
    for family in families():
        parts = [s for s in SPLITS if {*family} & {*spelling_words(s)}]
        assert len(parts) == 1
    (family,) = (one for one in families() if "write" in one)
    assert {"write", "wrote", "written", "writing", "writer"} <= set(family)
    sizes = [len(spelling_words(split)) for split in SPLITS]
    assert sizes == [4396, 185, 236]
    # A caller may change the list.
    spelling_words().clear()
    assert len(spelling_words()) == 4396
    with pytest.raises(ValueError, match="`split` must be one of"):
        spelling_words("all")


@pytest.mark.parametrize(
    "verb, forms",
    [
        ("permit", "permits permitted permitting"),
        ("offer", "offers offered offering"),
        ("apply", "applies applied applying"),
        ("destroy", "destroys destroyed destroying"),
        ("fix", "fixes fixed fixing"),
        ("travel", "travels traveled traveling"),
        ("quit", "quits quitted quitting"),
    ],
)
def test_verb_forms(verb, forms):
    rules = "with_s", "with_ed", "with_ing"
    found = [getattr(english_forms, rule)(verb) for rule in rules]
    assert found == forms.split()


def test_stems():
    same = (
        "calculator Calculations miscalculate",
        "run running",
        "happy unhappy",
    )
    for words in same:
        assert len({*map(word_stem, words.split())}) == 1, words
    assert word_stem("a lot") == "lot"
    assert len({*map(word_stem, ("library", "window", "run"))}) == 3
    for word in ("", " ", 3):
        with pytest.raises(ValueError, match="`word` must"):
            word_stem(word)
