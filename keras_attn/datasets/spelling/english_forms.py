"""Regular forms of English words, by rule.

Irregular forms are in the lexicon.
"""

import re
from typing import Any

_VOWELS = "aeiou"
# Words of several syllables that stress the last one and double its consonant.
_STRESSED_ENDS = frozenset(
    "admit commit control forbid forget begin occur permit prefer refer regret "
    "submit transfer".split()
)
_ONE_SYLLABLE = re.compile(r"(?:[^aeiou]*|[^aeiou]*qu)[aeiou][^aeiouwxy]")
_HARD_CH = frozenset({"stomach", "monarch"})
_O_WITH_ES = frozenset({"do", "go", "potato", "tomato"})
_LY = {"true": "truly", "whole": "wholly", "public": "publicly"}


def with_s(word: str) -> str:
    """Returns the plural of a noun, or the third person of a verb.

    Args:
        word: str, the dictionary form.

    Returns:
        str.

    Examples:
        >>> from keras_attn.datasets.spelling.english_forms import with_s
        >>> [with_s(word) for word in ("box", "city", "day", "stomach", "quiz")]
        ['boxes', 'cities', 'days', 'stomachs', 'quizzes']
    """
    if word in _HARD_CH:
        return word + "s"
    if word.endswith("iz"):
        return word + "zes"
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in _O_WITH_ES:
        return word + "es"
    if _ends_in_consonant_and_y(word):
        return word[:-1] + "ies"
    return word + "s"


def with_ed(verb: str) -> str:
    """Returns the past tense of a regular verb.

    Args:
        verb: str, the dictionary form.

    Returns:
        str.

    Examples:
        >>> from keras_attn.datasets.spelling.english_forms import with_ed
        >>> [with_ed(verb) for verb in ("agree", "try", "enjoy", "stop")]
        ['agreed', 'tried', 'enjoyed', 'stopped']
    """
    if verb.endswith("e"):
        return verb + "d"
    if _ends_in_consonant_and_y(verb):
        return verb[:-1] + "ied"
    return _doubled(verb) + "ed"


def with_ing(verb: str) -> str:
    """Returns the form of a verb in -ing.

    Args:
        verb: str, the dictionary form.

    Returns:
        str.

    Examples:
        >>> from keras_attn.datasets.spelling.english_forms import with_ing
        >>> [with_ing(verb) for verb in ("make", "see", "lie", "refer", "quit")]
        ['making', 'seeing', 'lying', 'referring', 'quitting']
    """
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return verb[:-1] + "ing"
    return _doubled(verb) + "ing"


def with_ly(adjective: str) -> str:
    """Returns the adverb of an adjective.

    Args:
        adjective: str.

    Returns:
        str. Adjectives in -ly, such as *friendly*, are unchanged.

    Examples:
        >>> from keras_attn.datasets.spelling.english_forms import with_ly
        >>> [with_ly(a) for a in ("happy", "gentle", "basic", "full", "true")]
        ['happily', 'gently', 'basically', 'fully', 'truly']
    """
    if adjective in _LY:
        return _LY[adjective]
    if adjective.endswith("ly"):
        return adjective
    if adjective.endswith("ic"):
        return adjective + "ally"
    if adjective.endswith("ll"):
        return adjective + "y"
    if adjective.endswith("le") and adjective[-3] not in _VOWELS:
        return adjective[:-1] + "y"
    if _ends_in_consonant_and_y(adjective):
        return adjective[:-1] + "ily"
    return adjective + "ly"


def compared(adjective: str) -> tuple[Any, ...]:
    """Returns the comparative and the superlative of a short adjective.

    Args:
        adjective: str.

    Returns:
        Tuple of two str.

    Examples:
        >>> from keras_attn.datasets.spelling.english_forms import compared
        >>> compared("big"), compared("easy"), compared("late")
        (('bigger', 'biggest'), ('easier', 'easiest'), ('later', 'latest'))
    """
    if adjective.endswith("e"):
        stem = adjective[:-1]
    elif _ends_in_consonant_and_y(adjective):
        stem = adjective[:-1] + "i"
    else:
        stem = _doubled(adjective)
    return stem + "er", stem + "est"


def _doubled(word):
    """Doubles the last consonant where an ending with a vowel requires it."""
    if word in _STRESSED_ENDS or _ONE_SYLLABLE.fullmatch(word):
        return word + word[-1]
    return word


def _ends_in_consonant_and_y(word):
    return word[-1] == "y" and word[-2] not in _VOWELS
