"""Sentences with tags, a pronoun to resolve, or an alignment of words."""

import collections

import pytest

from keras_attn.datasets import (
    make_aligned_pairs,
    make_pronoun_sentences,
    make_tagged_sentences,
)
from keras_attn.datasets.phrase_grammar import part_of_speech
from keras_attn.datasets.phrase_grammar.lexicon import VERBS

UPOS = "ADJ ADP ADV AUX CCONJ DET NOUN NUM PART PRON SCONJ VERB".split()
WRITTEN = """
the/DET old/ADJ man/NOUN closed/VERB the/DET open/ADJ door/NOUN
she/PRON has/VERB to/PART clean/VERB the/DET box/NOUN
we/PRON walked/VERB to/ADP the/DET clean/ADJ hotel/NOUN next/ADV to/ADP it/DET
the/DET bus/NOUN is/AUX as/ADV old/ADJ as/ADP my/PRON cars/NOUN
both/DET doors/NOUN are/AUX not/PART closed/ADJ next/ADJ week/NOUN
""".strip().splitlines()


@pytest.mark.parametrize("line", WRITTEN)
def test_tags_written_by_hand(line):
    words, tags = zip(*(pair.split("/") for pair in line.split()), strict=True)
    words = ["the" if word == "it" else word for word in words]
    assert part_of_speech.tag(words) == list(tags)


@pytest.mark.parametrize("tags", ["upos", "roles"])
def test_test_sentences_have_unknown_words(tags):
    train, validation, test = (
        make_tagged_sentences(count, split=split, tags=tags)
        for split, count in (("train", 2000), ("validation", 50), ("test", 300))
    )
    seen = {word for sentence in train for word in sentence.words}
    assert all(not seen.issuperset(sentence.words) for sentence in test)
    assert seen.issuperset(w for sentence in validation for w in sentence.words)
    assert len({w for sentence in test for w in sentence.words} - seen) > 20
    for words, found in (*train, *test):
        assert len(words) == len(found) and isinstance(words, tuple)
    if tags == "upos":
        assert sorted({tag for _, found in train for tag in found}) == UPOS
    else:
        for sentence in train:
            check_roles(*sentence)


PASTS = {verb.past: verb.particle.split() for verb in VERBS.values()}


def check_roles(words, tags):
    """The subject is first, the object after the verb, the location last."""
    spans = {}
    for role in dict.fromkeys(tag[2:] for tag in tags if tag != "O"):
        first, size = tags.index(f"B-{role}"), tags.count(f"I-{role}") + 1
        inside = (f"I-{role}",) * (size - 1)
        assert tags[first : first + size] == (f"B-{role}", *inside)
        assert tags.count(f"B-{role}") == 1
        spans[role] = words[first : first + size]
    outside = [w for w, tag in zip(words, tags, strict=True) if tag == "O"]
    assert words[: len(spans["subject"])] == spans["subject"]
    if outside[0] in ("is", "are"):
        assert "object" not in spans
        assert ("location" in spans) == (len(outside) == 1)
    else:
        assert outside[1:] == PASTS[outside[0]]
        assert "object" in spans
    if "location" in spans:
        assert spans["location"][0] in ("in", "on", "under", "near")
        assert words[-len(spans["location"]) :] == spans["location"]


# What each adjective can describe.
SUITS = """
animal dog cat horse goat cow duck sheep: tired old weak ill lazy hungry
street river bridge road field stream hill path: wide deep long steep muddy busy
box bag book chair lamp trunk case drum: big large thick small narrow full
"""
SUITS = {
    adjective: line.split(":")[0].split()
    for line in SUITS.strip().splitlines()
    for adjective in line.split(":")[1].split()
}


def test_the_adjective_decides():
    kinds, pairs = set(), {}
    for seed, split in enumerate(("train", "validation", "test")):
        pairs[split] = set()
        made = make_pronoun_sentences(6000, seed=seed, split=split)
        for words, pronoun, antecedent, other, cue in made:
            assert words[pronoun] == "it" and words[-1] == "."
            assert words[cue - 1] == "too"
            nouns = SUITS[words[cue]]
            noun, distractor = words[antecedent], words[other]
            assert noun in nouns and noun != distractor
            assert (distractor in nouns) == ("fit" in words)
            if "fit" in words:
                # What does not fit is too big, the other thing too small.
                is_small = words[cue] in ("small", "narrow", "full")
                assert (words[antecedent - 2] == "into") == is_small
            order = antecedent < other
            kinds.add((split, words[0], "fit" in words, "by" in words, order))
            pairs[split].add(frozenset((noun, distractor)))
    assert len(kinds) == 3 * 12
    # Pairs of nouns are held out, but each noun occurs in training.
    assert [len(found) for found in pairs.values()] == [59, 18, 15]
    assert len(set().union(*pairs.values())) == 59 + 18 + 15
    assert len(set().union(*pairs["train"])) == 24


def test_aligned_words_translate_each_other():
    translations, sizes = collections.defaultdict(set), collections.Counter()
    for source, target, alignment in make_aligned_pairs(2000):
        words = source.split()
        sizes[source.count(" and ")] += 1
        assert sorted(alignment) == list(range(len(words)))
        for word, index in zip(target.split(), alignment, strict=True):
            translations[words[index]].add(word)
    assert set(sizes) == {0, 1, 2}
    assert translations["cat"] == {"gato"}
    assert translations["keys"] == {"llaves"}
    assert translations["red"] == {"rojo", "roja", "rojos", "rojas"}
    assert translations["the"] == {"el", "la", "los", "las"}
    assert translations["my"] == {"mi", "mis"}
    assert translations["and"] == {"y"}
    nouns = [word for word, found in translations.items() if len(found) == 1]
    assert len(nouns) > 40
    pairs = make_aligned_pairs(50, min_phrases=4, max_phrases=5)
    assert {pair.source.count(" and ") for pair in pairs} == {3, 4}
