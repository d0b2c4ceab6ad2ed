"""Facts as sentences of the phrase grammar, questions about them, answers.

A fact is data first, words second. So what a passage says, and what it does
not, is known without reading a word of it.
"""

from typing import NamedTuple

from phrase_clauses import VERBS
from phrase_nouns import NOUNS, noun_phrase


class Thing(NamedTuple):
    """Holds somebody or something, as a passage names it.

    Args:
        determiner: str, such as "the".
        adjective: str, or None.
        noun: str, in the singular.
        plural: bool.

    Examples:
    >>> Thing("the", "red", "box", True).words
    ['the', 'red', 'boxes']
    """

    determiner: str
    adjective: str
    noun: str
    plural: bool = False

    @property
    def words(self):
        """Returns the words of its name."""
        return noun_phrase(
            self.determiner, self.noun, self.adjective, self.plural
        ).english.split()

    @property
    def human(self):
        """Returns whether one asks *who*."""
        return NOUNS[self.noun].kind == "human"


class Fact(NamedTuple):
    """Holds what one sentence says.

    Args:
        subject: `Thing`.
        verb: str, the base form: "be", or one that takes an object.
        object: `Thing`; None behind "be".
        quality: str, an adjective; None but behind "be".
        place: tuple (preposition, `Thing`), or None.

    Examples:
    >>> box = Thing("the", None, "box")
    >>> " ".join(sentence(Fact(box, "be", None, "open", None))[0])
    'the box is open'
    """

    subject: Thing
    verb: str
    object: Thing = None
    quality: str = None
    place: tuple = None


def sentence(fact):
    """Says a fact.

    Args:
        fact: `Fact`.

    Returns:
        List of str, its words, and a dict from the roles that one can ask for
        ("subject", "object", "place") to (first, last), where they stand.

    Examples:
    >>> girl, hat = Thing("the", None, "girl"), Thing("my", "red", "hat")
    >>> sentence(Fact(girl, "find", hat))
    (['the', 'girl', 'found', 'my', 'red', 'hat'], {'subject': (0, 1), \
'object': (3, 5)})
    """
    words, spans = list(fact.subject.words), {}
    spans["subject"] = 0, len(words) - 1
    words += [_is(fact.subject)] if fact.verb == "be" else _past(fact.verb)
    if fact.quality:
        words.append(fact.quality)
    for role, part in (
        ("object", fact.object and fact.object.words),
        ("place", fact.place and _place_words(fact.place)),
    ):
        if part:
            spans[role] = len(words), len(words) + len(part) - 1
            words += part
    return words, spans


def roles(fact):
    """Returns what one can ask about a fact, as a tuple of str.

    Args:
        fact: `Fact`. One that names no place may be asked for it all the same:
            then the passage does not say.

    Returns:
        Tuple of "subject", "object", "place".

    Examples:
    >>> roles(Fact(Thing("the", None, "box"), "be", quality="open"))
    ('subject',)
    """
    if fact.verb != "be":
        return "subject", "object", "place"
    return ("subject",) if fact.quality else ("subject", "place")


def ask(fact, role):
    """Asks for one part of a fact.

    Args:
        fact: `Fact`.
        role: str, one of `roles(fact)`.

    Returns:
        List of str, the words of the question.

    Examples:
    >>> girl, hat = Thing("the", None, "girl"), Thing("my", "red", "hat")
    >>> fact = Fact(girl, "find", hat)
    >>> [" ".join(ask(fact, role)) for role in roles(fact)]
    ['who found my red hat', 'what did the girl find', \
'where did the girl find my red hat']
    """
    if role not in roles(fact):
        raise ValueError(
            f"`role` must be one of {roles(fact)}. Received: role={role!r}"
        )
    subject, known = fact.subject, fact.object
    if fact.verb == "be":
        if fact.quality:
            name = subject._replace(determiner=None, adjective=None)
            return ["which", *name.words, _is(subject), fact.quality]
        if role == "place":
            return ["where", _is(subject), *subject.words]
        asked = "who" if subject.human else "what"
        return [asked, "is", *_place_words(fact.place)]
    if role == "subject":
        return ["who", *_past(fact.verb), *known.words]
    did = ["did", *subject.words, fact.verb, *_particle(fact.verb)]
    if role == "place":
        return ["where", *did, *known.words]
    return ["who" if known.human else "what", *did]


def answers(facts, fact, role):
    """Finds the facts that answer, or might be taken to answer, a question.

    Two things are alike where they have the same noun and no two different
    adjectives: *the box* may be *the red box*.

    Args:
        facts: list of `Fact`, a passage.
        fact: `Fact` and
        role: str, the question: `ask(fact, role)`.

    Returns:
        List of int, indices into `facts`.

    Examples:
    >>> man, boy = (Thing("the", None, noun) for noun in ("man", "boy"))
    >>> box, key = Thing("the", "red", "box"), Thing("the", None, "key")
    >>> facts = [Fact(man, "open", box), Fact(boy, "find", key)]
    >>> answers(facts, Fact(boy, "open", box), "subject")
    [0]
    >>> answers(facts, Fact(boy, "open", box), "object")
    []
    """
    return [
        number
        for number, other in enumerate(facts)
        if _may_answer(other, fact, role)
    ]


def alike(one, other):
    """Returns whether two things might be one.

    Examples:
    >>> box = Thing("the", None, "box")
    >>> red, black = (box._replace(adjective=c) for c in ("red", "black"))
    >>> alike(box, red), alike(red, black)
    (True, False)
    """
    if one is None or other is None or one.noun != other.noun:
        return False
    return one.adjective == other.adjective or None in (
        one.adjective,
        other.adjective,
    )


def _may_answer(other, fact, role):
    if fact.quality:
        return (
            other.quality == fact.quality
            and other.subject.noun == fact.subject.noun
        )
    if fact.verb == "be" and role == "place":
        named = other.subject, other.object
        return bool(other.place) and any(
            alike(one, fact.subject) for one in named
        )
    if fact.verb == "be":
        return bool(other.place) and (
            other.place[0] == fact.place[0]
            and alike(other.place[1], fact.place[1])
        )
    if other.verb != fact.verb:
        return False
    same = {
        "subject": alike(other.subject, fact.subject),
        "object": alike(other.object, fact.object),
        "place": other.place is not None,
    }
    # Who, and what: the place is not named in the question.
    if role != "place":
        same["place"] = True
        same[role] = True
    return all(same.values())


def _is(subject):
    return "are" if subject.plural else "is"


def _past(verb):
    return [VERBS[verb].past, *_particle(verb)]


def _particle(verb):
    return VERBS[verb].english_particle.split()


def _place_words(place):
    preposition, where = place
    return [*preposition.split(), *where.words]
