"""make_aligned_pairs: English and Spanish with known word alignment."""

from typing import NamedTuple

from keras_attn import checks
from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar.held_out import hash_fraction
from keras_attn.datasets.phrase_grammar.lexicon import ADJECTIVES, NOUNS
from keras_attn.datasets.phrase_grammar.noun_phrases import (
    Phrase,
    connect,
    noun_phrase,
)

_NOUNS = (
    *("cat", "dog", "horse", "bird", "turtle", "snake", "book", "letter"),
    *("key", "lamp", "bottle", "box", "shirt", "shoe", "hat", "table"),
    *("chair", "bed", "house", "church", "tree", "bridge", "car", "boat"),
)
_ADJECTIVES = {
    noun: tuple(
        adjective
        for adjective in (
            *("big", "small", "old", "beautiful", "expensive", "heavy"),
            *("strange", "red", "white", "black", "green", "broken", "dirty"),
            "new",
        )
        if NOUNS[noun].kind in ADJECTIVES[adjective].kinds
    )
    for noun in _NOUNS
}
# Each is one word in both languages.
_SINGULAR = ("the", "this", "that", "my", "our")
_PLURAL = ("the", "these", "my", "two", "three", "many")
_MOST_PHRASES = 1000


class AlignedPair(NamedTuple):
    """A text, its translation, and which word translates which.

    Args:
        source: str.
        target: str.
        alignment: tuple of int. For each word of the target, the index of the
            word of the source that it translates.

    Examples:
        >>> pair = keras_attn.datasets.AlignedPair(
        ...     "my red car", "mi coche rojo", (0, 2, 1))
        >>> words = pair.source.split()
        >>> [words[index] for index in pair.alignment]
        ['my', 'car', 'red']
    """

    source: str
    target: str
    alignment: tuple[int, ...]


def make_aligned_pairs(
    n: int,
    *,
    seed: int = 0,
    split: str = "train",
    min_phrases: int = 1,
    max_phrases: int = 3,
) -> list[AlignedPair]:
    """Makes lists of things in English and Spanish with the word alignment.

    For comparing attention weights with the true alignment: "my red car and two
    old trees", "mi coche rojo y dos árboles viejos". The adjective is before
    the noun in English and after it in Spanish. Determiners and adjectives
    agree with the Spanish noun.

    A text has `min_phrases` to `max_phrases` noun phrases of two or three words
    joined by "and", in lower case, from 72 English and 117 Spanish words. The
    target has as many words as the source; each translates one word. 2,629
    distinct pairs have one phrase, and 6.9 million two.

    10 % of the pairs are for the test and 5 % for validation, by a hash of the
    source.

    Args:
        n: int >= 0. Number of pairs.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".
        min_phrases: int in [1, 1000]. Fewest noun phrases per text. Default 1.
        max_phrases: int in [`min_phrases`, 1000]. Most noun phrases; each
            number is equally likely. Default 3.

    Returns:
        List of n distinct `AlignedPair`.

    Raises:
        ValueError: an argument is invalid, or n distinct pairs do not exist.

    Examples:
        >>> pair = keras_attn.datasets.make_aligned_pairs(2)[1]
        >>> pair.source
        'two turtles and these big books'
        >>> pair.target
        'dos tortugas y estos libros grandes'
        >>> pair.alignment
        (0, 1, 2, 3, 5, 4)
    """
    sampling.check_arguments(n, seed, split)
    checks.integer("min_phrases", min_phrases, 1, _MOST_PHRASES)
    checks.integer("max_phrases", max_phrases, min_phrases, _MOST_PHRASES)
    return sampling.take_distinct(
        n, _candidates(seed, split, min_phrases, max_phrases)
    )


def _candidates(seed, split, fewest, most):
    random = sampling.named_random(seed, "aligned pairs")
    while True:
        size = fewest + random.integer(most - fewest + 1)
        pair = _draw(random)
        for _ in range(size - 1):
            pair = _joined(pair, _draw(random))
        yield (pair.source, pair) if _split(pair.source) == split else None


def _split(source):
    fraction = hash_fraction("aligned pair", source)
    if fraction < 0.05:
        return "validation"
    return "test" if fraction < 0.15 else "train"


def _draw(random):
    noun, is_plural = random.choice(_NOUNS), random.happens(0.5)
    determiner = random.choice(_PLURAL if is_plural else _SINGULAR)
    if random.happens(0.25):
        adjective, alignment = None, (0, 1)
    else:
        adjective, alignment = random.choice(_ADJECTIVES[noun]), (0, 2, 1)
    phrase = noun_phrase(determiner, noun, adjective, is_plural)
    return AlignedPair(phrase.english, phrase.spanish, alignment)


def _joined(first, second):
    source, target = connect(Phrase(*first[:2]), "and", Phrase(*second[:2]))
    conjunction = len(first.alignment)
    shifted = (conjunction + 1 + index for index in second.alignment)
    return AlignedPair(
        source, target, (*first.alignment, conjunction, *shifted)
    )
