"""Noun phrases and prepositional phrases, in English and Spanish."""

import re
from typing import Any, NamedTuple

from keras_attn.datasets.phrase_grammar import inflection
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    CONJUNCTIONS,
    DEGREES,
    DETERMINERS,
    NOUNS,
    PREPOSITIONS,
    PRONOUNS,
)

# Persons: indices of the forms of a verb. That of "i" is 0, of "we" is 2.
HE, WE, THEY = 1, 2, 3
_HIATUS = re.compile("h?i(?!e)")
_CONTRACTION = re.compile(r"\b(a|de) el\b")


class Phrase(NamedTuple):
    """The same words in both languages."""

    english: str
    spanish: str


class NounPhrase(NamedTuple):
    """A phrase with the features that other words agree with.

    `spanish` is empty for a subject that Spanish omits. `is_human` is for
    objects, which have the preposition "a" if they are human.
    """

    english: str
    spanish: str
    gender: str
    person: int
    is_human: bool

    @property
    def is_plural(self) -> bool:
        """Whether adjectives have the plural."""
        return self.person >= WE


def pronoun(english: Any) -> NounPhrase:
    """Returns a subject pronoun: i, he, she, we or they."""
    return NounPhrase(english, *PRONOUNS[english], True)


def noun_phrase(
    determiner: Any,
    noun: Any,
    adjective: str | None = None,
    is_plural: bool = False,
    degree: Any = None,
) -> NounPhrase:
    """Returns a noun with a determiner and perhaps an adjective.

    All are English dictionary forms. The adjective is before the noun in
    English and after it in Spanish.
    """
    entry = NOUNS[noun]
    article = ""
    if determiner is not None:
        key = entry.gender + "p" * is_plural
        article = DETERMINERS[determiner].forms[key]
        if not article:
            raise ValueError(
                f"`determiner` must match the number of {noun!r}. "
                f"Received: determiner={determiner!r}, is_plural={is_plural}"
            )
    english, spanish = noun, entry.spanish
    if is_plural:
        english = inflection.english_plural(noun)
        spanish = inflection.spanish_plural(spanish)
    if adjective is not None:
        english = words(degree, adjective, english)
        form = inflect(adjective, degree, entry.gender, is_plural)
        spanish = f"{spanish} {form}"
    if determiner == "a" and english[0] in "aeiou":
        determiner = "an"
    return NounPhrase(
        words(determiner, english),
        words(article, spanish),
        entry.gender,
        THEY if is_plural else HE,
        entry.kind == "human",
    )


def generic(noun: Any) -> Any:
    """Returns a noun in its general sense: "milk", "cats".

    It has no article in English, but one in Spanish: "la leche".
    """
    phrase = noun_phrase("the", noun, is_plural=not NOUNS[noun].is_mass)
    return phrase._replace(english=phrase.english.removeprefix("the "))


def coordinate(first: Any, second: Any) -> NounPhrase:
    """Returns two noun phrases joined by "and".

    The whole is feminine if both are.
    """
    gender = "f" if first.gender == second.gender == "f" else "m"
    is_human = first.is_human or second.is_human
    return NounPhrase(*connect(first, "and", second), gender, THEY, is_human)


def prepositional_phrase(preposition: Any, noun: Any) -> Any:
    """Returns a phrase of location: "near the park"."""
    spanish = PREPOSITIONS[preposition].spanish
    return join(Phrase(preposition, spanish), noun)


def inflect(adjective: str, degree: Any, gender: Any, is_plural: Any) -> Any:
    """Returns the Spanish form of an English adjective, after its degree."""
    spanish = ADJECTIVES[adjective].spanish
    form = inflection.agree(spanish, gender, is_plural)
    return form if degree is None else f"{DEGREES[degree]} {form}"


def join(*phrases: Any) -> Phrase:
    """Concatenates phrases; None is skipped.

    In Spanish, "a el" becomes "al" and "de el" becomes "del".
    """
    phrases = [phrase for phrase in phrases if phrase is not None]
    spanish = words(*[phrase[1] for phrase in phrases])
    return Phrase(
        words(*[phrase[0] for phrase in phrases]),
        _CONTRACTION.sub(r"\1l", spanish),
    )


def connect(first: Any, conjunction: Any, second: Any) -> Any:
    """Joins two phrases by "and", "but" or "because"."""
    spanish = CONJUNCTIONS[conjunction]
    if spanish == "y" and _HIATUS.match(second[1]):
        spanish = "e"
    return join(first, Phrase(conjunction, spanish), second)


def words(*parts: Any) -> str:
    """Joins the parts that are neither None nor empty."""
    return " ".join([part for part in parts if part])
