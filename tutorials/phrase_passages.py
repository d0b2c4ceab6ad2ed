"""Passages of two to four facts that share their words.

Two men with two boxes, one verb for both: what is asked about such a passage
cannot be answered by the verb alone.
"""

import functools

from phrase_clauses import VERBS
from phrase_facts import Fact, Thing, alike, sentence
from phrase_nouns import ADJECTIVES, NOUNS

# Verbs of which none nearly says what another says.
_VERBS = tuple(
    "eat cook buy sell read write open close clean paint find lose visit help "
    "call invite bring repair wear".split()
)
# What such a verb changes is not described besides.
_CHANGING = frozenset("open close clean repair".split())
_CHANGED = frozenset("open closed clean dirty broken".split())
_DETERMINERS = ("the",) * 5 + ("my", "our", "his", "her")
_ROOMS = frozenset({"building", "area"})
_SPOTS = {
    "on": frozenset({"furniture"}),
    "under": frozenset({"furniture"}),
    "near": frozenset({"furniture", "landmark"}),
    "in": _ROOMS,
}


def passage(draw):
    """Draws two to four facts, the first two of them with one verb.

    Args:
        draw: `random.Random`.

    Returns:
        List of `Fact`, in the order of the passage.

    Examples:
    >>> import random
    >>> passage(random.Random(1)) == passage(random.Random(1))
    True
    """
    verb, other = draw.sample(_VERBS, 2)
    people = _things(draw, frozenset({"human"}), 3)
    things = _things(draw, VERBS[verb].objects, 2)
    rooms = _things(draw, _ROOMS, 2, adjective=0.2)
    facts = [_action(draw, verb, people, things, rooms)]
    most = draw.randint(2, 4)
    while len(facts) < most:
        chance = draw.random()
        if len(facts) == 1 or chance < 0.3:
            fact = _action(draw, verb, people, things, rooms)
        elif chance < 0.6:
            few = _things(draw, VERBS[other].objects, 1)
            fact = _action(draw, other, people, few, rooms)
        elif chance < 0.8:
            fact = _location(draw, people + things)
        else:
            fact = _description(draw, people + things, {verb, other})
        if not _said(fact, facts):
            facts.append(fact)
    draw.shuffle(facts)
    return facts


def write(facts):
    """Writes a passage.

    Args:
        facts: list of `Fact`.

    Returns:
        List of str, its words, a full stop behind each sentence; and a list of
        dicts, one a fact, from role to (first, last) in the passage.

    Examples:
    >>> box, key = (Thing("the", None, noun) for noun in ("box", "key"))
    >>> words, spans = write([Fact(one, "be", quality="empty") for one in
    ...     (box, key)])
    >>> " ".join(words), spans[1]
    ('the box is empty . the key is empty .', {'subject': (5, 6)})
    """
    words, spans = [], []
    for fact in facts:
        said, found = sentence(fact)
        spans.append(
            {
                role: (first + len(words), last + len(words))
                for role, (first, last) in found.items()
            }
        )
        words += [*said, "."]
    return words, spans


def twisted(facts, fact):
    """Changes one part of a fact for another that its passage names.

    Args:
        facts: list of `Fact`, the passage.
        fact: `Fact`, one of them.

    Returns:
        List of `Fact`, each sensible: nobody opens a soup.
    """
    found = []
    for other in facts:
        for part in fact._fields:
            value = getattr(other, part)
            if value is not None and getattr(fact, part) is not None:
                found.append(fact._replace(**{part: value}))
    # With whom, and what, something else was done.
    named = [one for other in facts for one in (other.subject, other.object)]
    for one in filter(None, named):
        found.append(fact._replace(subject=one))
        if fact.object:
            found.append(fact._replace(object=one))
    if fact.quality:
        found += [
            fact._replace(quality=quality)
            for quality in _qualities(NOUNS[fact.subject.noun].kind)
        ]
    different = dict.fromkeys(found)
    return [one for one in different if one != fact and _sensible(one)]


def exchanged(facts, one, other):
    """Exchanges the subjects of two facts.

    Args:
        facts: list of `Fact`.
        one: int and
        other: int, indices into `facts`.

    Returns:
        List of `Fact`.
    """
    facts = list(facts)
    first, second = facts[one].subject, facts[other].subject
    facts[one] = facts[one]._replace(subject=second)
    facts[other] = facts[other]._replace(subject=first)
    return facts


def _action(draw, verb, people, things, rooms):
    place = ("in", draw.choice(rooms)) if draw.random() < 0.4 else None
    subject, known = draw.choice(people), draw.choice(things)
    while alike(subject, known):
        subject = draw.choice(people)
    return Fact(subject, verb, known, place=place)


def _location(draw, named):
    subject = draw.choice(named)
    if NOUNS[subject.noun].kind in _ROOMS | _SPOTS["near"]:
        spot = "near"
    else:
        spot = draw.choice(tuple(_SPOTS))
    if subject.human:
        spot = draw.choice(("near", "in"))
    (where,) = _things(draw, _SPOTS[spot], 1, adjective=0.4, many=0.0)
    while alike(where, subject):
        (where,) = _things(draw, _SPOTS[spot], 1, adjective=0.4, many=0.0)
    return Fact(subject, "be", place=(spot, where))


def _description(draw, named, verbs):
    subject = draw.choice(named)
    qualities = _qualities(NOUNS[subject.noun].kind)
    if verbs & _CHANGING:
        qualities = [name for name in qualities if name not in _CHANGED]
    if not qualities:
        return _location(draw, named)
    return Fact(subject, "be", quality=draw.choice(qualities))


def _things(draw, kinds, count, adjective=0.75, many=0.2):
    """Draws things; the first two often have their noun in common."""
    nouns = draw.sample(_nouns(kinds), min(count, len(_nouns(kinds))))
    colours = [draw.sample(_adjectives(NOUNS[noun].kind), 2) for noun in nouns]
    plural = [not NOUNS[n].mass and draw.random() < many for n in nouns]
    things = [
        Thing(
            draw.choice(_DETERMINERS),
            first if draw.random() < adjective else None,
            noun,
            more,
        )
        for noun, (first, _), more in zip(nouns, colours, plural, strict=True)
    ]
    if count > 1 and draw.random() < 0.6:
        first, second = colours[0]
        things[0] = things[0]._replace(adjective=first)
        things[1] = things[0]._replace(adjective=second)
    return things


def _said(fact, facts):
    """Whether a passage says so already, or has its subject elsewhere."""
    return any(
        fact._replace(place=None) == other._replace(place=None)
        for other in facts
    )


def _sensible(fact):
    kind = NOUNS[fact.subject.noun].kind
    if fact.quality:
        return kind in ADJECTIVES[fact.quality].kinds
    if fact.verb == "be":
        return not (fact.object or alike(fact.subject, fact.place[1]))
    if not fact.object or alike(fact.subject, fact.object):
        return False
    verb = VERBS[fact.verb]
    fits = NOUNS[fact.object.noun].kind in verb.objects
    return fits and kind in verb.subjects


@functools.cache
def _nouns(kinds):
    return sorted(name for name, noun in NOUNS.items() if noun.kind in kinds)


@functools.cache
def _adjectives(kind):
    """What something is at all times, and may be named by."""
    return [
        name
        for name, adjective in ADJECTIVES.items()
        if adjective.copula == "ser"
        and adjective.attributive
        and kind in adjective.kinds
    ]


@functools.cache
def _qualities(kind):
    """What something is for a while."""
    return [
        name
        for name, adjective in ADJECTIVES.items()
        if adjective.copula == "estar" and kind in adjective.kinds
    ]
