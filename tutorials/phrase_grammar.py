"""Pairs of English and Spanish sentences, made by a small grammar.

`generate_pairs` draws distinct pairs. `phrase_splits` draws a training set and
held-out sets that are new in two ways:

* the set of content words of a held-out sentence (its nouns, adjectives and
  verbs, whatever their form) is the set of no training sentence;
* one in twenty pairs of a noun and an adjective that suits it, such as *cat*
  and *large*, never meet in a training sentence at all, though each of the two
  words is there. Sentences in which such a pair meets are test sentences.

Which side a sentence falls on depends on its words alone, not on a seed: no
training set made here ever contains a test sentence made here.

The words are in `phrase_lexicon`, the grammar in `phrase_inflection`,
`phrase_nouns` and `phrase_clauses`, the drawing in `phrase_sampler`. A sentence
of one's own choice is put together from the building functions:

Examples:
>>> from phrase_clauses import describe
>>> from phrase_nouns import noun_phrase
>>> tuple(describe(noun_phrase("this", "cat"), "large", "very"))
('this cat is very large', 'este gato es muy grande')
"""

import collections
import functools
import hashlib
from typing import NamedTuple

import phrase_inflection as inflection
from phrase_clauses import VERBS
from phrase_lexicon import FEELINGS
from phrase_nouns import ADJECTIVES, NOUNS
from phrase_sampler import PhraseSampler

SHOWCASE = [
    ("this cat is very large", "este gato es muy grande"),
    (
        "the old house is near the river",
        "la casa vieja está cerca del río",
    ),
    (
        "she wants to buy two red shirts",
        "ella quiere comprar dos camisas rojas",
    ),
    (
        "yesterday my sister read an interesting letter",
        "ayer mi hermana leyó una carta interesante",
    ),
    (
        "these horses are not tired today",
        "estos caballos no están cansados hoy",
    ),
    (
        "the boy likes these black shoes",
        "al niño le gustan estos zapatos negros",
    ),
    (
        "there are three small birds in the garden",
        "hay tres pájaros pequeños en el jardín",
    ),
    (
        "our teacher is going to visit the modern museum tomorrow",
        "nuestro profesor va a visitar el museo moderno mañana",
    ),
]
# One combination of every showcase sentence.
CHOSEN_COMBINATIONS = {
    ("cat", "large"),
    ("house", "old"),
    ("shirt", "red"),
    ("letter", "interesting"),
    ("horse", "tired"),
    ("shoe", "black"),
    ("bird", "small"),
    ("museum", "modern"),
}


class PhraseSplits(NamedTuple):
    """Three lists of (english, spanish) pairs.

    Args:
        train: list of pairs, to learn from.
        validation: list of pairs whose sets of content words are new.
        test: list of pairs, likewise; half also have a held-out
            combination of noun and adjective.

    Examples:
    >>> PhraseSplits([("tea", "té")], [], []).train
    [('tea', 'té')]
    """

    train: list
    validation: list
    test: list


def generate_pairs(count, seed=0):
    """Returns pairs of a sentence and its translation, all different.

    Args:
        count: int >= 0, the number of pairs.
        seed: int. The same seed gives the same pairs. Default 0.

    Returns:
        List of `count` tuples (english, spanish); no English one comes twice.

    Raises:
        ValueError: `count` is negative.

    Examples:
    >>> pairs = generate_pairs(100, seed=1)
    >>> len(set(english for english, _ in pairs))
    100
    >>> pairs == generate_pairs(100, seed=1)
    True
    """
    if count < 0:
        raise ValueError(
            f"`count` must not be negative. Received: count={count}"
        )
    sentence = PhraseSampler(seed).sentence
    pairs = {}
    while len(pairs) < count:
        english, spanish = sentence()
        pairs[english] = spanish
    return list(pairs.items())


def phrase_splits(train=20_000, validation=500, test=1_200, seed=0):
    """Returns training, validation and test pairs of the sizes asked for.

    Args:
        train: int >= 0, the number of training pairs. Default 20,000.
        validation: int >= 0, the number of validation pairs. Default 500.
        test: int >= 0, the number of test pairs. Default 1,200.
        seed: int. The same seed gives the same pairs. Default 0.

    Returns:
        `PhraseSplits`.

    Raises:
        ValueError: a size is negative.

    Examples:
    >>> splits = phrase_splits(train=50, validation=4, test=6)
    >>> [len(pairs) for pairs in splits]
    [50, 4, 6]
    """
    sizes = PhraseSplits(train, validation, test)
    if min(sizes) < 0:
        raise ValueError(f"Sizes must not be negative. Received: {sizes}")
    sentence = PhraseSampler(seed).sentence
    pairs = PhraseSplits({}, {}, {})
    while any(
        len(have) < want for have, want in zip(pairs, sizes, strict=True)
    ):
        english, spanish = sentence()
        split = split_of(english)
        if split and len(getattr(pairs, split)) < getattr(sizes, split):
            getattr(pairs, split)[english] = spanish
    return PhraseSplits(*(list(part.items()) for part in pairs))


def split_pairs(pairs):
    """Returns pairs sorted into training, validation and test pairs.

    Args:
        pairs: iterable of (english, spanish), as from `generate_pairs`.

    Returns:
        `PhraseSplits`; the sentences of `SHOWCASE` are in none of the three.

    Examples:
    >>> split_pairs(SHOWCASE)
    PhraseSplits(train=[], validation=[], test=[])
    >>> split_pairs([("a large cat", "un gato grande")]).test
    [('a large cat', 'un gato grande')]
    """
    splits = PhraseSplits([], [], [])
    for english, spanish in pairs:
        split = split_of(english)
        if split:
            getattr(splits, split).append((english, spanish))
    return splits


def split_of(english):
    """Returns the name of the split to which a sentence belongs.

    Args:
        english: str.

    Returns:
        Str, "train", "validation" or "test"; None for those of `SHOWCASE`.

    Examples:
    >>> split_of("these cats are not large"), split_of(SHOWCASE[0][0])
    ('test', None)
    """
    if english in _showcase_sentences():
        return None
    if new_combinations(english):
        return "test"
    draw = _draw("content words", *content_words(english))
    if draw < 0.03:
        return "validation"
    return "test" if draw < 0.08 else "train"


def new_combinations(english):
    """Returns the held-out pairs of noun and adjective in a sentence.

    Args:
        english: str.

    Returns:
        List of (noun, adjective), empty for all training sentences.

    Examples:
    >>> new_combinations("the cats eat in a large kitchen")
    [('cat', 'large')]
    """
    words = sorted(content_words(english))
    return [
        (noun, adjective)
        for noun in words
        if noun in NOUNS
        for adjective in words
        if adjective in ADJECTIVES and is_held_out(noun, adjective)
    ]


@functools.cache
def is_held_out(noun, adjective):
    """Returns whether a noun and an adjective never meet in training.

    Args:
        noun: str, an English noun in the singular.
        adjective: str, an English adjective.

    Returns:
        Bool: True for `CHOSEN_COMBINATIONS` and 5 % of those that make sense.

    Examples:
    >>> is_held_out("cat", "large")
    True
    """
    if (noun, adjective) in CHOSEN_COMBINATIONS:
        return True
    if NOUNS[noun].kind not in ADJECTIVES[adjective].kinds:
        return False
    return _draw("combination", noun, adjective) < 0.05


def content_words(english):
    """Returns the nouns, adjectives and verbs of a sentence.

    Args:
        english: str.

    Returns:
        Frozenset of str, dictionary forms.

    Examples:
    >>> sorted(content_words("she ate those large apples"))
    ['apple', 'eat', 'large']
    """
    known = _dictionary_forms()
    return frozenset(
        form for word in english.split() for form in known.get(word, ())
    )


@functools.cache
def _dictionary_forms():
    """Maps a word to its dictionary forms: *closed* has two."""
    forms = collections.defaultdict(set)
    for word in (*ADJECTIVES, *FEELINGS, "like"):
        forms[word].add(word)
    forms["likes"].add("like")
    for noun in NOUNS:
        for word in (noun, inflection.english_plural(noun)):
            forms[word].add(noun)
    for verb, entry in VERBS.items():
        for word in (verb, inflection.english_third_person(verb), entry.past):
            forms[word].add(verb)
    return dict(forms)


@functools.cache
def _showcase_sentences():
    return frozenset(english for english, _ in SHOWCASE)


def _draw(*words):
    """Returns a number in [0, 1) that depends on the set of words only."""
    text = "|".join(sorted(words)).encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
