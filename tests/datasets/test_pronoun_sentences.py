"""Sentences with a pronoun to resolve."""

import pytest

from keras_attn.datasets import make_pronoun_sentences
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

SPLITS = {
    "train": "c67bfae7d613a3c2",
    "validation": "82c79b733e71a000",
    "test": "cbdd6d710a867479",
}
# What each adjective can describe.
SUITS = {
    "animal dog cat horse goat cow duck sheep": (
        "tired old weak ill lazy hungry"
    ),
    "street river bridge road field stream hill path": (
        "wide deep long steep muddy busy"
    ),
    "box bag book chair lamp trunk case drum": (
        "big large thick small narrow full"
    ),
}


@pytest.mark.parametrize("split", SPLITS)
def test_the_adjective_decides(split):
    sentences = make_pronoun_sentences(600, seed=3, split=split)
    assert digest(sentences) == SPLITS[split]
    suits = {
        adjective: nouns.split()
        for nouns, adjectives in SUITS.items()
        for adjective in adjectives.split()
    }
    seen = set()
    for words, pronoun, antecedent, other, cue in sentences:
        assert words[pronoun] == "it" and words[-1] == "."
        assert words[cue - 1] == "too"
        nouns = suits[words[cue]]
        assert words[antecedent] in nouns
        if "fit" in words:
            assert words[other] in nouns and words[other] != words[antecedent]
            # What does not fit is too big, what it does not fit into too small.
            is_small = words[cue] in ("small", "narrow", "full")
            assert (words[antecedent - 2] == "into") == is_small
        else:
            assert words[other] not in nouns
        seen.add((words[0], "fit" in words, "by" in words, antecedent < other))
    assert len(seen) == 12


def test_pairs_of_nouns_are_held_out():
    found = {
        split: {
            frozenset((one.words[one.antecedent], one.words[one.other]))
            for one in make_pronoun_sentences(9000, seed=seed, split=split)
        }
        for seed, split in enumerate(SPLITS)
    }
    assert {split: len(pairs) for split, pairs in found.items()} == {
        "train": 59,
        "validation": 18,
        "test": 15,
    }
    assert len(set().union(*found.values())) == 92
    # Each noun occurs in training.
    assert len(set().union(*found["train"])) == 24


def test_arguments():
    assert make_pronoun_sentences(0) == []
    more, other = (make_pronoun_sentences(9, seed=seed) for seed in (0, 1))
    assert make_pronoun_sentences(3) == more[:3] != other[:3]
    with pytest.raises(ValueError, match="`n` must be at least 0"):
        make_pronoun_sentences(-1)
    with pytest.raises(ValueError, match="`split` must be one of"):
        make_pronoun_sentences(1, split="dev")
