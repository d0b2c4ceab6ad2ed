"""make_translation_pairs: English sentences and their Spanish translations."""

from typing import NamedTuple

from keras_attn.datasets import sampling
from keras_attn.datasets.phrase_grammar.held_out import sentence_split
from keras_attn.datasets.phrase_grammar.sampler import SentenceSampler


class TranslationPair(NamedTuple):
    """A sentence and its translation.

    Args:
        source: str.
        target: str.

    Examples:
        >>> pair = keras_attn.datasets.TranslationPair("milk", "leche")
        >>> pair.target
        'leche'
    """

    source: str
    target: str


SHOWCASE_PAIRS = (
    TranslationPair("this cat is very large", "este gato es muy grande"),
    TranslationPair(
        "the old house is near the river", "la casa vieja está cerca del río"
    ),
    TranslationPair(
        "she wants to buy two red shirts",
        "ella quiere comprar dos camisas rojas",
    ),
    TranslationPair(
        "yesterday my sister read an interesting letter",
        "ayer mi hermana leyó una carta interesante",
    ),
    TranslationPair(
        "these horses are not tired today",
        "estos caballos no están cansados hoy",
    ),
    TranslationPair(
        "the boy likes these black shoes",
        "al niño le gustan estos zapatos negros",
    ),
    TranslationPair(
        "there are three small birds in the garden",
        "hay tres pájaros pequeños en el jardín",
    ),
    TranslationPair(
        "our teacher is going to visit the modern museum tomorrow",
        "nuestro profesor va a visitar el museo moderno mañana",
    ),
)
"""Pairs for demonstrations, in no split.

Each has a combination of a noun and an adjective that is in no training
sentence.
"""
_SHOWCASE = frozenset(pair.source for pair in SHOWCASE_PAIRS)


def make_translation_pairs(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[TranslationPair]:
    """Makes English sentences and their Spanish translations with a grammar.

    For machine translation: words change their order (a red car, un coche
    rojo), agree in gender and number over a distance, are dropped (the subject
    "i"), or depend on the context ("is" is "es" or "está"). Each sentence has
    one translation.

    Sentences have 3 to 15 words in each language, in lower case, without
    punctuation, separated by spaces. Millions of them are distinct. 20,000
    training pairs contain 473 English and 862 Spanish words, and every word of
    the other splits.

    A sentence belongs to a split by the set of its content words (nouns,
    adjectives and verbs, in their dictionary forms): 3 % are validation
    sentences and 5 % test sentences. Further test sentences have a held-out
    combination: one in twenty pairs of a noun and an adjective, such as "cat"
    and "large", occurs together in test sentences only. The sentences of
    `SHOWCASE_PAIRS`, for demonstrations, are in no split.

    Args:
        n: int >= 0. Number of pairs.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n `TranslationPair` with distinct sources.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> pairs = keras_attn.datasets.make_translation_pairs(1000)
        >>> pairs[3].source
        'three parks are too strange'
        >>> pairs[3].target
        'tres parques son demasiado extraños'
        >>> keras_attn.datasets.SHOWCASE_PAIRS[0].target
        'este gato es muy grande'
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    sampler = SentenceSampler(sampling.named_random(seed, "translation pairs"))
    while True:
        pair = TranslationPair(*sampler.sentence())
        if sentence_split(pair.source) == split and pair[0] not in _SHOWCASE:
            yield pair.source, pair
        else:
            yield None
