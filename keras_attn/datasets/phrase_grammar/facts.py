"""Facts, the sentences that state them, and questions about them.

A fact is data from which sentences are written. So what a text states, and what
it does not, is known without parsing it.
"""

import functools
from typing import Any, NamedTuple

from keras_attn.datasets.phrase_grammar.held_out import is_held_out
from keras_attn.datasets.phrase_grammar.lexicon import NOUNS, VERBS
from keras_attn.datasets.phrase_grammar.noun_phrases import noun_phrase


class Entity(NamedTuple):
    """A person or thing, as a text refers to it; the adjective may be None."""

    determiner: str
    adjective: str
    noun: str
    is_plural: bool = False

    @property
    def words(self) -> list[str]:
        """List of str."""
        return list(_entity_words(self))

    @property
    def is_human(self) -> bool:
        """Whether questions ask "who"."""
        return NOUNS[self.noun].kind == "human"


class Fact(NamedTuple):
    """What one sentence states.

    The verb is "be", with a predicate (an adjective) or a location, or a verb
    with an object and perhaps a location. A location is a tuple (preposition,
    `Entity`).
    """

    subject: Entity
    verb: str
    object: Entity = None
    predicate: str = None
    location: tuple[Any, ...] = None

    @property
    def is_held_out(self) -> bool:
        """Whether an adjective describes a noun only in test sentences."""
        site = self.location and self.location[1]
        entities = filter(None, (self.subject, self.object, site))
        pairs = [(one.noun, one.adjective) for one in entities]
        pairs.append((self.subject.noun, self.predicate))
        return any(
            adjective is not None and is_held_out(noun, adjective)
            for noun, adjective in pairs
        )


@functools.cache
def _entity_words(entity):
    determiner, adjective, noun, is_plural = entity
    phrase = noun_phrase(determiner, noun, adjective, is_plural)
    return tuple(phrase.english.split())


def sentence(fact: Any) -> tuple[Any, Any]:
    """Returns the words of a fact, and a dict from role to (start, stop).

    The roles are "subject", "object" and "location".
    """
    words = fact.subject.words
    spans = {"subject": (0, len(words))}
    words += [_be(fact.subject)] if fact.verb == "be" else _past(fact.verb)
    if fact.predicate:
        words.append(fact.predicate)
    for role, part in (
        ("object", fact.object and fact.object.words),
        ("location", fact.location and _location_words(fact.location)),
    ):
        if part:
            spans[role] = len(words), len(words) + len(part)
            words += part
    return words, spans


def roles(fact: Any) -> Any:
    """Returns the roles that a question can ask for.

    The location too if the fact has none: then there is no answer.
    """
    if fact.verb != "be":
        return "subject", "object", "location"
    return ("subject",) if fact.predicate else ("subject", "location")


def question(fact: Any, role: Any) -> list[Any]:
    """Returns the words of a question about a role of a fact."""
    subject, known = fact.subject, fact.object
    if fact.verb == "be":
        if fact.predicate:
            name = subject._replace(determiner=None, adjective=None)
            return ["which", *name.words, _be(subject), fact.predicate]
        if role == "location":
            return ["where", _be(subject), *subject.words]
        asked = "who" if subject.is_human else "what"
        return [asked, "is", *_location_words(fact.location)]
    if role == "subject":
        return ["who", *_past(fact.verb), *known.words]
    did = ["did", *subject.words, fact.verb, *_particle(fact.verb)]
    if role == "location":
        return ["where", *did, *known.words]
    return ["who" if known.is_human else "what", *did]


def answering_facts(facts: dict[str, Any], fact: Any, role: Any) -> list[Any]:
    """Returns the indices of the facts that may answer `question(fact, role)`.

    Entities may be the same if they have the same noun and no two different
    adjectives: "the box" may be "the red box".
    """
    return [
        index
        for index, other in enumerate(facts)
        if _may_answer(other, fact, role)
    ]


def may_be_same(one: Any, other: Any) -> bool:
    """Whether two entities, or None, may be the same."""
    if one is None or other is None or one.noun != other.noun:
        return False
    return one.adjective == other.adjective or None in (
        one.adjective,
        other.adjective,
    )


def _may_answer(other, fact, role):
    if fact.predicate:
        return (
            other.predicate == fact.predicate
            and other.subject.noun == fact.subject.noun
        )
    if fact.verb == "be" and role == "location":
        return bool(other.location) and any(
            may_be_same(one, fact.subject)
            for one in (other.subject, other.object)
        )
    if fact.verb == "be":
        return bool(other.location) and (
            other.location[0] == fact.location[0]
            and may_be_same(other.location[1], fact.location[1])
        )
    if other.verb != fact.verb:
        return False
    # The location is not in the question, and neither is what it asks for.
    return (
        (role == "subject" or may_be_same(other.subject, fact.subject))
        and (role == "object" or may_be_same(other.object, fact.object))
        and (role != "location" or other.location is not None)
    )


def _be(subject):
    return "are" if subject.is_plural else "is"


def _past(verb):
    return [VERBS[verb].past, *_particle(verb)]


def _particle(verb):
    return VERBS[verb].particle.split()


def _location_words(location):
    preposition, entity = location
    return [*preposition.split(), *entity.words]
