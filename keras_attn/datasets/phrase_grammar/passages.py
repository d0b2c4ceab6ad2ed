"""Passages of two to four facts that share their words.

Two facts have the same verb, and often the same nouns with other adjectives. So
a question about a passage is not answered by finding its verb.
"""

import functools
from typing import TYPE_CHECKING, Any

from keras_attn.datasets.phrase_grammar.facts import (
    Entity,
    Fact,
    may_be_same,
    sentence,
)
from keras_attn.datasets.phrase_grammar.held_out import (
    content_words,
    hash_fraction,
)
from keras_attn.datasets.phrase_grammar.lexicon import ADJECTIVES, NOUNS, VERBS

if TYPE_CHECKING:
    from keras_attn.datasets.stable_random import StableRandom


# No two have nearly the same meaning.
_VERBS = tuple(
    "eat cook buy sell read write open close clean paint find lose visit help "
    "call invite bring repair wear".split()
)
# A passage with such a verb has no such predicate, which it might contradict.
_CHANGING = frozenset("open close clean repair".split())
_CHANGED = frozenset("open closed clean dirty broken".split())
_DETERMINERS = ("the",) * 5 + ("my", "our", "his", "her")
_HUMAN = frozenset({"human"})
_ROOMS = frozenset({"building", "area"})
_LOCATIONS = {
    "on": frozenset({"furniture"}),
    "under": frozenset({"furniture"}),
    "near": frozenset({"furniture", "landmark"}),
    "in": _ROOMS,
}
_PREPOSITIONS = tuple(_LOCATIONS)


def passage(random: "StableRandom") -> Any:
    """Draws two to four facts, two of them with the same verb."""
    verb, other_verb = random.sample(_VERBS, 2)
    people = _entities(random, _HUMAN, 3)
    things = _entities(random, VERBS[verb].objects, 2)
    rooms = _entities(random, _ROOMS, 2, adjective=0.2)
    facts = [_action(random, verb, people, things, rooms)]
    size = 2 + random.integer(3)
    while len(facts) < size:
        kind = random.random()
        if len(facts) == 1 or kind < 0.3:
            fact = _action(random, verb, people, things, rooms)
        elif kind < 0.6:
            objects = _entities(random, VERBS[other_verb].objects, 1)
            fact = _action(random, other_verb, people, objects, rooms)
        elif kind < 0.8:
            fact = _location(random, people + things)
        else:
            fact = _description(random, people + things, {verb, other_verb})
        if not _is_stated(fact, facts):
            facts.append(fact)
    random.shuffle(facts)
    return facts


def split_of(facts: dict[str, Any]) -> Any:
    """Returns the split of a passage, or of some of its facts.

    Test: a noun and its adjective are held out. Of the others, 5 % by their
    content words are for validation.
    """
    if any(fact.is_held_out for fact in facts):
        return "test"
    words = content_words(text(facts))
    is_validation = hash_fraction("passage", *words) < 0.05
    return "validation" if is_validation else "train"


def sentences(facts: dict[str, Any]) -> list[str]:
    """Returns a list of str, one sentence per fact, with full stops."""
    return [" ".join(sentence(fact)[0]) + " ." for fact in facts]


def text(facts: dict[str, Any]) -> str:
    """Returns the passage as a str."""
    return " ".join(sentences(facts))


def variations(facts: dict[str, Any], fact: Any) -> list[Any]:
    """Returns other facts in the words of a passage that make sense.

    One part of `fact` is replaced. The variations of a training fact have no
    held-out combination.
    """
    found = []
    for other in facts:
        for field in fact._fields:
            value = getattr(other, field)
            if value is not None and getattr(fact, field) is not None:
                found.append(fact._replace(**{field: value}))
        for entity in filter(None, (other.subject, other.object)):
            found.append(fact._replace(subject=entity))
            if fact.object:
                found.append(fact._replace(object=entity))
    if fact.predicate:
        kind = NOUNS[fact.subject.noun].kind
        found += [fact._replace(predicate=name) for name in _predicates(kind)]
    return [
        other
        for other in dict.fromkeys(found)
        if other != fact
        and _makes_sense(other)
        and (fact.is_held_out or not other.is_held_out)
    ]


def _action(random, verb, people, things, rooms):
    location = ("in", random.choice(rooms)) if random.happens(0.4) else None
    subject, thing = random.choice(people), random.choice(things)
    while may_be_same(subject, thing):
        subject = random.choice(people)
    return Fact(subject, verb, thing, location=location)


def _location(random, entities):
    subject = random.choice(entities)
    if NOUNS[subject.noun].kind in _ROOMS | _LOCATIONS["near"]:
        preposition = "near"
    elif subject.is_human:
        preposition = random.choice(("near", "in"))
    else:
        preposition = random.choice(_PREPOSITIONS)
    while True:
        (where,) = _entities(
            random, _LOCATIONS[preposition], 1, adjective=0.4, plural=0.0
        )
        if not may_be_same(where, subject):
            return Fact(subject, "be", location=(preposition, where))


def _description(random, entities, verbs):
    subject = random.choice(entities)
    predicates = _predicates(NOUNS[subject.noun].kind)
    if verbs & _CHANGING:
        predicates = [name for name in predicates if name not in _CHANGED]
    if not predicates:
        return _location(random, entities)
    return Fact(subject, "be", predicate=random.choice(predicates))


def _entities(random, kinds, count, adjective=0.75, plural=0.2):
    """Draws entities; the first two often have the same noun.

    The floats are the probabilities of an adjective and of the plural.
    """
    names = random.sample(_nouns(kinds), min(count, len(_nouns(kinds))))
    found, first_adjectives = [], None
    for name in names:
        noun = NOUNS[name]
        adjectives = random.sample(_attributes(noun.kind), 2)
        first_adjectives = first_adjectives or adjectives
        entity = Entity(
            random.choice(_DETERMINERS),
            adjectives[0] if random.happens(adjective) else None,
            name,
            not noun.is_mass and random.happens(plural),
        )
        found.append(entity)
    if count > 1 and random.happens(0.6):
        first, second = first_adjectives
        found[0] = found[0]._replace(adjective=first)
        found[1] = found[0]._replace(adjective=second)
    return found


def _is_stated(fact, facts):
    """Whether a passage already has such a fact, perhaps elsewhere."""
    return any(_core(fact) == _core(other) for other in facts)


def _core(fact):
    return fact.subject, fact.verb, fact.object, fact.predicate is None


def _makes_sense(fact):
    kind = NOUNS[fact.subject.noun].kind
    if fact.predicate:
        return kind in ADJECTIVES[fact.predicate].kinds
    if fact.verb == "be":
        return not (fact.object or may_be_same(fact.subject, fact.location[1]))
    if not fact.object or may_be_same(fact.subject, fact.object):
        return False
    verb = VERBS[fact.verb]
    return (
        NOUNS[fact.object.noun].kind in verb.objects and kind in verb.subjects
    )


@functools.cache
def _nouns(kinds):
    return sorted(name for name, noun in NOUNS.items() if noun.kind in kinds)


@functools.cache
def _attributes(kind):
    """Adjectives of lasting properties, which tell entities apart."""
    return [
        name
        for name, adjective in ADJECTIVES.items()
        if adjective.copula == "ser"
        and adjective.is_attributive
        and kind in adjective.kinds
    ]


@functools.cache
def _predicates(kind):
    """Adjectives of states."""
    return [
        name
        for name, adjective in ADJECTIVES.items()
        if adjective.copula == "estar" and kind in adjective.kinds
    ]
