"""Noun phrases of the phrase grammar, in English and Spanish at once.

A `NounPhrase` carries the features that the rest of a sentence agrees with:
its gender and number reach the adjectives, its person reaches the verb.
"""

import re
from typing import NamedTuple

import phrase_inflection as inflection
import phrase_lexicon as lexicon

HE, WE, THEY = 1, 2, 3
AGREEMENTS = ("m", "f", "mp", "fp")


class Phrase(NamedTuple):
    """The same words in both languages.

    Args:
        english: str.
        spanish: str.

    Examples:
    >>> Phrase("tomorrow", "mañana").spanish
    'mañana'
    """

    english: str
    spanish: str


class NounPhrase(NamedTuple):
    """A phrase with the features that other words agree with.

    Args:
        english: str.
        spanish: str, empty for a subject that Spanish leaves out.
        gender: str, "m" or "f".
        person: int, 0 to 3: that of *i*, *he*, *we* or *they*.
        human: bool. A human object takes the personal *a*.

    Examples:
    >>> NounPhrase("she", "ella", "f", 1, True).gender
    'f'
    """

    english: str
    spanish: str
    gender: str
    person: int
    human: bool

    @property
    def plural(self):
        """Whether adjectives take the plural."""
        return self.person >= WE


class Noun(NamedTuple):
    """One row of `lexicon.NOUNS`."""

    spanish: str
    gender: str
    kind: str
    mass: bool


class Adjective(NamedTuple):
    """One row of `lexicon.ADJECTIVES`."""

    spanish: str
    copula: str
    gradable: bool
    attributive: bool
    kinds: frozenset


def _nouns():
    nouns = {}
    for kind, entries in lexicon.NOUNS.items():
        for entry in entries.split():
            english, spanish, gender = entry.split("|")
            mass = english.endswith("*")
            nouns[english.rstrip("*")] = Noun(spanish, gender, kind, mass)
    return nouns


NOUNS = _nouns()
ADJECTIVES = {
    english: Adjective(
        spanish,
        copula,
        "g" in flags,
        "a" in flags,
        lexicon.expand_classes(kinds),
    )
    for english, spanish, copula, flags, kinds in lexicon.rows(
        lexicon.ADJECTIVES
    )
}
DETERMINERS = {
    english: (dict(zip(AGREEMENTS, forms, strict=True)), bool(definite))
    for english, *forms, definite in lexicon.rows(lexicon.DETERMINERS)
}
PREPOSITIONS = {
    english: (spanish, lexicon.expand_classes(kinds))
    for english, spanish, kinds in lexicon.rows(lexicon.PREPOSITIONS)
}
CONJUNCTIONS = {"and": "y", "but": "pero", "because": "porque"}


def join(*phrases):
    """Returns the phrases one after the other, with *al* and *del* formed.

    Args:
        *phrases: `Phrase`, `NounPhrase`, or None for nothing.

    Returns:
        `Phrase`.

    Examples:
    >>> join(Phrase("to", "a"), Phrase("the park", "el parque")).spanish
    'al parque'
    """
    phrases = [phrase for phrase in phrases if phrase is not None]
    return Phrase(
        glue(*(phrase.english for phrase in phrases)),
        _contract(glue(*(phrase.spanish for phrase in phrases))),
    )


def pronoun(english):
    """Returns a subject pronoun.

    Args:
        english: str, one of i, he, she, we, they.

    Returns:
        `NounPhrase`.

    Examples:
    >>> pronoun("she").spanish, pronoun("we").spanish
    ('ella', '')
    """
    for row in lexicon.PRONOUNS.split():
        name, spanish, gender, person = row.split("|")
        if name == english:
            return NounPhrase(english, spanish, gender, int(person), True)
    raise ValueError(
        f"`english` must be a subject pronoun. Received: english={english!r}"
    )


def noun_phrase(determiner, noun, adjective=None, plural=False, degree=None):
    """Returns a noun with its determiner and, if given, an adjective.

    English puts the adjective before the noun, Spanish after it.

    Args:
        determiner: str from `lexicon.DETERMINERS`, or None for none.
        noun: str, an English noun in the singular.
        adjective: str, an English adjective. Default None.
        plural: bool. Default False.
        degree: str from `lexicon.DEGREES`, before the adjective. Default None.

    Returns:
        `NounPhrase`.

    Raises:
        ValueError: the determiner does not go with that number.

    Examples:
    >>> noun_phrase("these", "house", "big", plural=True)[:2]
    ('these big houses', 'estas casas grandes')
    >>> noun_phrase("an", "cat")
    Traceback (most recent call last):
    ...
    ValueError: `determiner` must suit the number of 'cat'. Received: \
determiner='an', plural=False
    """
    entry = NOUNS[noun]
    article = ""
    if determiner is not None:
        forms, _ = DETERMINERS.get(determiner, ({}, False))
        article = forms.get(entry.gender + "p" * plural)
        if not article:
            raise ValueError(
                f"`determiner` must suit the number of {noun!r}. "
                f"Received: determiner={determiner!r}, plural={plural}"
            )
    english = inflection.english_plural(noun) if plural else noun
    spanish = (
        inflection.spanish_plural(entry.spanish) if plural else entry.spanish
    )
    before, after = "", ""
    if adjective is not None:
        before = glue(degree, adjective)
        after = graded(adjective, degree, entry.gender, plural)
    english = glue(before, english)
    if determiner == "a" and english[0] in "aeiou":
        determiner = "an"
    return NounPhrase(
        glue(determiner, english),
        glue(article, spanish, after),
        entry.gender,
        THEY if plural else HE,
        entry.kind == "human",
    )


def generic(noun):
    """Returns a noun meant in general: bare in English, not in Spanish.

    Args:
        noun: str, an English noun in the singular.

    Returns:
        `NounPhrase`, plural unless the noun is a mass noun.

    Examples:
    >>> generic("milk")[:2], generic("cat")[:2]
    (('milk', 'la leche'), ('cats', 'los gatos'))
    """
    phrase = noun_phrase("the", noun, plural=not NOUNS[noun].mass)
    return phrase._replace(english=phrase.english.removeprefix("the "))


def coordinate(first, second):
    """Returns two noun phrases joined by *and*, feminine only if both are.

    Args:
        first: `NounPhrase`.
        second: `NounPhrase`.

    Returns:
        `NounPhrase`, plural.

    Examples:
    >>> boy, girl = noun_phrase("the", "boy"), noun_phrase("my", "sister")
    >>> coordinate(boy, girl)[:3]
    ('the boy and my sister', 'el niño y mi hermana', 'm')
    """
    gender = "f" if first.gender == second.gender == "f" else "m"
    human = first.human or second.human
    return NounPhrase(*connect(first, "and", second), gender, THEY, human)


def connect(first, conjunction, second):
    """Returns two phrases joined by a conjunction; *y* is *e* before *i*.

    Args:
        first: `Phrase` or `NounPhrase`.
        conjunction: str from `CONJUNCTIONS`.
        second: `Phrase` or `NounPhrase`.

    Returns:
        `Phrase`.

    Examples:
    >>> first, second = Phrase("i sing", "canto"), Phrase("i go", "voy")
    >>> connect(first, "because", second).english
    'i sing because i go'
    >>> third = Phrase("i invite my aunt", "invito a mi tía")
    >>> connect(first, "and", third).spanish
    'canto e invito a mi tía'
    """
    spanish = CONJUNCTIONS[conjunction]
    if spanish == "y" and re.match("h?i(?!e)", second.spanish):
        spanish = "e"
    return join(first, Phrase(conjunction, spanish), second)


def place(preposition, where):
    """Returns a phrase of place.

    Args:
        preposition: str from `lexicon.PREPOSITIONS`.
        where: `NounPhrase`.

    Returns:
        `Phrase`.

    Examples:
    >>> place("near", noun_phrase("the", "park")).spanish
    'cerca del parque'
    """
    spanish, _ = PREPOSITIONS[preposition]
    return join(Phrase(preposition, spanish), where)


def graded(adjective, degree, gender, plural):
    """Returns a Spanish adjective that agrees, after its degree.

    Args:
        adjective: str, an English adjective.
        degree: str from `lexicon.DEGREES`, or None.
        gender: str, "m" or "f".
        plural: bool.

    Returns:
        Str.

    Examples:
    >>> graded("red", "very", "f", True)
    'muy rojas'
    """
    form = inflection.agree(ADJECTIVES[adjective].spanish, gender, plural)
    return glue(lexicon.DEGREES[degree] if degree else "", form)


def glue(*words):
    """Returns the words that are not empty, separated by spaces.

    Args:
        *words: str or None.

    Returns:
        Str.

    Examples:
    >>> glue("the", None, "cat", "")
    'the cat'
    """
    return " ".join(word for word in words if word)


def _contract(spanish):
    return re.sub(r"\b(a|de) el\b", lambda match: match[1] + "l", spanish)
