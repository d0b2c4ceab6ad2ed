"""Splits of sentences, by their content words.

A split depends on the nouns, adjectives and verbs of a sentence alone, in their
dictionary forms. One in twenty combinations of a noun and an adjective, such as
"large cat", is held out too: it occurs in test sentences only.
"""

import collections
import functools
import hashlib
import itertools
from typing import Any

from keras_attn.datasets.phrase_grammar import inflection
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    FEELINGS,
    NOUNS,
    VERBS,
)

# One of each sentence of `SHOWCASE_PAIRS`.
_CHOSEN_COMBINATIONS = {
    ("cat", "big"),
    ("house", "old"),
    ("shirt", "red"),
    ("letter", "interesting"),
    ("horse", "tired"),
    ("shoe", "black"),
    ("bird", "small"),
    ("museum", "modern"),
}
# They have the same translation, so a split must not separate them.
_SYNONYMS = {"large": "big"}


def sentence_split(english: Any) -> Any:
    """Returns the split of a sentence: 5 % test, 3 % validation, rest train.

    The sentences with held-out combinations are in the test split too.
    """
    words = content_words(english)
    if _has_held_out_combination(words):
        return "test"
    fraction = hash_fraction("content words", *words)
    if fraction < 0.03:
        return "validation"
    return "test" if fraction < 0.08 else "train"


def is_held_out(noun: Any, adjective: str) -> bool:
    """Whether a combination is in no training or validation sentence."""
    adjective = _SYNONYMS.get(adjective, adjective)
    return adjective in _held_out_adjectives().get(noun, ())


def content_words(english: Any) -> Any:
    """Returns the nouns, adjectives and verbs, in their dictionary forms.

    A frozenset of str. "Closed" has two dictionary forms.
    """
    known = _dictionary_forms()
    return frozenset(
        [form for word in english.split() for form in known.get(word, ())]
    )


def hash_fraction(*words: Any) -> Any:
    """Returns a number in [0, 1) that depends on the set of words only."""
    text = "|".join(sorted(words)).encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _has_held_out_combination(words):
    held_out = _held_out_adjectives()
    return any(
        not held_out[word].isdisjoint(words)
        for word in words
        if word in held_out
    )


@functools.cache
def _held_out_adjectives():
    """Maps nouns to the adjectives that are held out with them."""
    found = collections.defaultdict(set)
    for noun, adjective in itertools.product(NOUNS, ADJECTIVES):
        if adjective not in _SYNONYMS and (
            (noun, adjective) in _CHOSEN_COMBINATIONS
            or (
                NOUNS[noun].kind in ADJECTIVES[adjective].kinds
                and hash_fraction("combination", noun, adjective) < 0.05
            )
        ):
            found[noun].add(adjective)
    return dict(found)


@functools.cache
def _dictionary_forms():
    """Maps each word to its dictionary forms."""
    forms = collections.defaultdict(set)
    for word in (*ADJECTIVES, *FEELINGS, "like"):
        forms[word].add(_SYNONYMS.get(word, word))
    forms["likes"].add("like")
    for noun in NOUNS:
        for word in (noun, inflection.english_plural(noun)):
            forms[word].add(noun)
    for verb, entry in VERBS.items():
        for word in (verb, inflection.third_person(verb), entry.past):
            forms[word].add(verb)
    return dict(forms)
