"""Documents, sentence pairs, entailment pairs and labeled sentences."""

import collections
import itertools
import re

import numpy as np
import pytest

from keras_attn import datasets
from keras_attn.datasets.phrase_grammar.held_out import is_held_out
from keras_attn.datasets.phrase_grammar.inflection import english_plural
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    FEELINGS,
    NOUNS,
    VERBS,
)

pytestmark = pytest.mark.one_backend

SINGULARS = {english_plural(noun): noun for noun in NOUNS}
PASTS = {verb.past for verb in VERBS.values()} - {""}


def content(text):
    """The words without determiners, in the singular."""
    words = [SINGULARS.get(word, word) for word in text.split()]
    return [w for w in words if w not in ("the", "my", "our", "his", "her")]


def has_combination(text):
    pairs = itertools.pairwise(content(text))
    return any(
        is_held_out(noun, adjective)
        for adjective, noun in pairs
        # Not "closed the door".
        if adjective in ADJECTIVES and adjective not in PASTS and noun in NOUNS
    )


def shared_words(first, second):
    return len(set(content(first)) & set(content(second)) - {"."})


@pytest.mark.parametrize("split", ["train", "test"])
def test_documents(split):
    sizes, shared = collections.Counter(), []
    for document in datasets.make_documents(1000, split=split):
        sizes[len(document)] += 1
        for sentence in document:
            assert re.fullmatch(r"[a-z]+( [a-z]+){3,10} \.", sentence)
        verbs = [PASTS.intersection(sentence.split()) for sentence in document]
        pairs = itertools.combinations(verbs, 2)
        assert any(first & second for first, second in pairs)
        text = " ".join(document)
        assert split == "test" or not has_combination(text)
        shared.append(
            max(shared_words(*p) for p in itertools.pairwise(document))
        )
    assert set(sizes) == {2, 3, 4} and min(sizes.values()) > 200
    assert np.mean(shared) > 2


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_sentence_pairs(split):
    pairs = datasets.make_sentence_pairs(200, split=split)
    shared = {True: [], False: []}
    for first, second, is_next in pairs:
        shared[is_next].append(shared_words(first, second))
        assert split == "test" or not has_combination(f"{first} {second}")
    assert abs(len(shared[True]) - 100) < 35
    assert np.mean(shared[True]) > np.mean(shared[False]) + 1


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_entailed_hypotheses_omit_words(split):
    """The others are not what remains of the premise."""
    pairs = datasets.make_entailment_pairs(300, split=split)
    counts, omitted = collections.Counter(), collections.Counter()
    for premise, hypothesis, entailed in pairs:
        counts[entailed] += 1
        words = iter(content(premise))
        assert entailed == all(word in words for word in content(hypothesis))
        assert split == "test" or not has_combination(f"{premise} {hypothesis}")
        if entailed:
            words = iter(premise.split())
            assert all(word in words for word in hypothesis.split())
            omitted[len(premise.split()) - len(hypothesis.split())] += 1
        else:
            same = set(content(premise)) & set(content(hypothesis))
            omitted["added"] += same == set(content(premise))
    assert abs(counts[True] - 150) < 45
    # Adjectives and locations.
    assert omitted[1] and omitted[2] and omitted[3] and omitted["added"]


def test_labels_are_told_by_the_words():
    labels = collections.Counter()
    for text, label, text_pair in datasets.make_labeled_sentences(2000):
        assert text_pair is None
        labels[label] += 1
        words = text.split()
        is_copular = bool({"am", "is", "are", "be"} & {*words})
        if "there" in words:
            expected = {"existence"}
        elif re.search(" as .* as | less .* than ", text):
            expected = {"comparison"}
        elif re.search("and|but|because", text) and label == "compound":
            expected = {"compound"}
        elif {"like", "likes"} & {*words}:
            expected = {"preference"}
        elif {*FEELINGS} & {*words}:
            expected = {"feeling"}
        elif (is_copular and "going" not in words) or "to be" in text:
            expected = {"description", "location"}
        else:
            expected = {"action"}
        assert label in expected, text
    assert len(labels) == 8 and min(labels.values()) > 200
