"""Draws sentences of the phrase grammar: which words, in which pattern.

The building functions know grammar; this file knows what is sensible to say:
animals eat, people read books, only food is fresh.
"""

import functools
import itertools
import random

import phrase_lexicon as lexicon
from phrase_clauses import (
    AUXILIARIES,
    VERBS,
    act,
    compare,
    describe,
    exist,
    feel,
    infinitive,
    like,
    locate,
    who,
)
from phrase_nouns import (
    ADJECTIVES,
    CONJUNCTIONS,
    DETERMINERS,
    NOUNS,
    PREPOSITIONS,
    Phrase,
    connect,
    coordinate,
    generic,
    join,
    noun_phrase,
    place,
    pronoun,
)

SHORTEST, LONGEST = 3, 15
THINGS = lexicon.expand_classes("thing food drink animal opening place")
PEOPLE = frozenset({"human"})
MOVABLE = lexicon.expand_classes("human animal object container text vehicle")
SUBJECT_PRONOUNS = ("i", "we") * 4 + ("he", "she") * 2 + ("they",)
GIVING = ("give", "show")
# *the* and *a* are drawn as often as four other determiners together.
COMMON = {"the": 4, "a": 4}


class PhraseSampler:
    """Draws sentences at random, nearly uniformly over the lexicon.

    Args:
        seed: int. The same seed gives the same sentences.

    Examples:
    >>> PhraseSampler(0).sentence() == PhraseSampler(0).sentence()
    True
    """

    def __init__(self, seed):
        """Starts the random numbers."""
        self._random = random.Random(seed)
        self._patterns = {
            self.action: 52,
            self.description: 15,
            self.comparison: 5,
            self.location: 5,
            self.existence: 5,
            self.liking: 7,
            self.feeling: 3,
            self.two_clauses: 20,
        }

    def sentence(self):
        """Returns a `Phrase` of 3 to 15 words in each language."""
        patterns, weights = zip(*self._patterns.items(), strict=True)
        while True:
            phrase = self._random.choices(patterns, weights)[0]()
            if _is_short(phrase.english) and _is_short(phrase.spanish):
                if not _repeats(phrase.english):
                    return phrase

    def action(self):
        """Returns somebody doing something somewhere, sometime."""
        verb = self._pick(VERBS)
        past = 46 if VERBS[verb].past else 0
        tense = self._random.choices(("present", "past", ""), (30, past, 22))[0]
        tense = tense or self._pick(AUXILIARIES)
        negative = self._happens(0.2)
        frequency = None
        if tense == "present" and not negative and self._happens(0.25):
            frequency = self._pick(lexicon.FREQUENCIES)
        clause = self._act(verb, tense, negative, frequency)
        if verb in lexicon.MANNER_VERBS.split() and self._happens(0.25):
            clause = join(clause, self._translated(lexicon.MANNERS))
        lasting = not VERBS[verb].past
        timeless = lasting or frequency is not None or self._happens(0.65)
        if tense == "past" or not timeless:
            when = tense if tense in lexicon.TIMES else "future"
            return self._timed(clause, when)
        return clause

    def description(self):
        """Returns somebody or something being *adjective*."""
        if self._happens(0.15):
            return self._two_qualities()
        adjective = self._pick(_predicates())
        state = ADJECTIVES[adjective].copula == "estar"
        future = state and self._happens(0.15)
        clause = self._describe(adjective, future)
        if state and self._happens(0.35):
            return self._timed(clause, "future" if future else "state")
        return clause

    def comparison(self):
        """Returns two of a kind compared."""
        adjective = self._pick(_gradable())
        kinds = ADJECTIVES[adjective].kinds
        # English says *less expensive*, hardly ever *less big*.
        less = len(adjective) > 5 and self._happens(0.5)
        return compare(
            self._subject(kinds, adjective=0.1),
            adjective,
            self._draw(kinds, True, 0.1),
            less=less,
            negative=not less and self._happens(0.2),
        )

    def location(self):
        """Returns where somebody or something is."""
        return locate(
            self._subject(MOVABLE, definite=True),
            self._place(PREPOSITIONS),
            negative=self._happens(0.2),
        )

    def existence(self):
        """Returns what there is somewhere."""
        thing = self._draw(MOVABLE, False)
        return exist(thing, self._place(PREPOSITIONS))

    def liking(self):
        """Returns what somebody likes, or likes to do."""
        subject = self._subject(PEOPLE, definite=True, pairs=0.0)
        if self._happens(0.35):
            verb = self._pick(_verbs_of_people())
            liked = infinitive(verb, self._complement(verb, True))
        elif self._happens(0.4):
            liked = generic(self._pick(_nouns(THINGS)))
        else:
            liked = self._draw(THINGS, True)
        return like(subject, liked, negative=self._happens(0.25))

    def feeling(self):
        """Returns somebody hungry, thirsty, sleepy or afraid."""
        clause = feel(
            self._subject(PEOPLE | {"animal"}),
            self._pick(lexicon.FEELINGS),
            degree="very" if self._happens(0.4) else None,
            negative=self._happens(0.2),
        )
        return self._timed(clause, "state") if self._happens(0.3) else clause

    def two_clauses(self):
        """Returns two clauses joined by *and*, *but* or *because*."""
        if self._happens(0.3):
            first = self._act(self._pick(_verbs_with_past()), "past")
            second = self._act(self._pick(_verbs_with_past()), "past")
            both = connect(first, self._pick(("and", "but")), second)
            return join(self._translated(lexicon.TIMES["past"]), both)
        first = self._act(self._pick(VERBS), "present", self._happens(0.15))
        conjunction = self._pick(CONJUNCTIONS)
        draw = self._random.random()
        if draw < 0.15:
            second = feel(self._subject(PEOPLE), self._pick(lexicon.FEELINGS))
        elif draw < 0.35 or conjunction == "because":
            second = self._describe(self._pick(_predicates()), False)
        else:
            second = self._act(self._pick(VERBS), "present")
        return connect(first, conjunction, second)

    def _act(self, verb, tense, negative=False, frequency=None):
        subject = self._subject(VERBS[verb].subjects, definite=negative or None)
        complement = self._complement(verb, negative or frequency == "never")
        recipient = None
        if verb in GIVING:
            recipient = self._draw(PEOPLE, True, 0.1)
        clause = act(
            subject, verb, complement, tense, negative, frequency, recipient
        )
        if "area" in VERBS[verb].objects or verb in GIVING:
            return clause
        if self._happens(0.1 if complement else 0.7):
            return join(clause, self._place(("in", "near", "behind")))
        return clause

    def _describe(self, adjective, future):
        entry = ADJECTIVES[adjective]
        negative = self._happens(0.2)
        subject = self._subject(
            entry.kinds, negative or None, relative=0.2, pronouns=0.2
        )
        degree = None
        if entry.gradable and self._happens(0.5):
            degree = self._pick(lexicon.DEGREES)
        if negative and degree == "quite":
            degree = "very"
        return describe(subject, adjective, degree, negative, future)

    def _two_qualities(self):
        adjective, also = self._pick(_pairs_of_qualities())
        kinds = ADJECTIVES[adjective].kinds & ADJECTIVES[also].kinds
        subject = self._subject(kinds, adjective=0.0)
        return describe(subject, adjective, also=also)

    def _subject(
        self,
        kinds,
        definite=None,
        adjective=0.25,
        relative=0.0,
        pronouns=0.6,
        pairs=0.12,
    ):
        if "human" in kinds and self._happens(pronouns):
            return pronoun(self._pick(SUBJECT_PRONOUNS))
        noun = self._pick(_nouns(kinds))
        if self._happens(pairs):
            other = self._pick(_nouns(frozenset({NOUNS[noun].kind})))
            if other != noun:
                pair = (self._phrase(name, True, 0.0) for name in (noun, other))
                return coordinate(*pair)
        subject = self._phrase(noun, definite, adjective)
        if subject.human and self._happens(relative):
            verb = self._pick(_verbs_of_people())
            return who(subject, verb, self._complement(verb, False))
        return subject

    def _complement(self, verb, negative):
        """Draws an object or a goal: definite after *not* and for people."""
        if not VERBS[verb].objects:
            return None
        noun = self._pick(_nouns(VERBS[verb].objects))
        definite = negative or NOUNS[noun].kind == "human" or None
        first = self._phrase(noun, definite, bare=0.6)
        if NOUNS[noun].kind in ("food", "drink", "clothes"):
            if self._happens(0.2):
                other = self._pick(_nouns(frozenset({NOUNS[noun].kind})))
                second = self._phrase(other, definite, 0.0, bare=0.6)
                return coordinate(first, second) if other != noun else first
        return first

    def _place(self, prepositions):
        preposition = self._pick(prepositions)
        kinds = PREPOSITIONS[preposition][1]
        return place(preposition, self._draw(kinds, None, 0.25, plural=0.2))

    def _draw(self, kinds, *args, **kwargs):
        return self._phrase(self._pick(_nouns(kinds)), *args, **kwargs)

    def _phrase(self, noun, definite, adjective=0.35, plural=0.45, bare=0.0):
        """Draws the determiner, number and adjective of a noun.

        `definite` is True, False or None for either; the floats are the
        probabilities of an adjective, the plural, and a bare mass noun.
        """
        mass = NOUNS[noun].mass
        many = not mass and self._happens(plural)
        determiner = self._pick(_determiners(many, True if mass else definite))
        if mass and self._happens(bare):
            determiner = None
        quality = degree = None
        if self._happens(adjective):
            quality = self._pick(_qualities(NOUNS[noun].kind))
            if ADJECTIVES[quality].gradable and self._happens(0.15):
                degree = "very"
        return noun_phrase(determiner, noun, quality, many, degree)

    def _timed(self, clause, tense):
        when = self._translated(lexicon.TIMES[tense])
        front = self._happens(0.4)
        return join(when, clause) if front else join(clause, when)

    def _translated(self, words):
        english = self._pick(words)
        return Phrase(english, words[english])

    def _pick(self, options):
        return self._random.choice(tuple(options))

    def _happens(self, probability):
        return self._random.random() < probability


def _is_short(sentence):
    return SHORTEST <= sentence.count(" ") + 1 <= LONGEST


def _repeats(english):
    """Whether a noun or adjective comes twice (a sick bird is sick)."""
    words = [w for w in english.split() if w in ADJECTIVES or w in NOUNS]
    return len(set(words)) < len(words)


@functools.cache
def _nouns(kinds):
    return tuple(name for name, noun in NOUNS.items() if noun.kind in kinds)


@functools.cache
def _qualities(kind):
    return tuple(
        name
        for name, adjective in ADJECTIVES.items()
        if adjective.attributive and kind in adjective.kinds
    )


@functools.cache
def _predicates():
    """Adjectives; thrice those that never stand beside a noun instead."""
    names = []
    for name, adjective in ADJECTIVES.items():
        names += [name] * (1 if adjective.attributive else 3)
    return tuple(names)


@functools.cache
def _gradable():
    return tuple(name for name in ADJECTIVES if ADJECTIVES[name].gradable)


@functools.cache
def _pairs_of_qualities():
    scales = [set(row.split()) for row in lexicon.SCALES.splitlines()]
    return tuple(
        (first, second)
        for first, second in itertools.permutations(_gradable(), 2)
        if ADJECTIVES[first].copula == ADJECTIVES[second].copula == "ser"
        and ADJECTIVES[first].kinds & ADJECTIVES[second].kinds
        and not any({first, second} <= scale for scale in scales)
    )


@functools.cache
def _verbs_of_people():
    return tuple(
        name
        for name, verb in VERBS.items()
        if "human" in verb.subjects and name not in GIVING
    )


@functools.cache
def _verbs_with_past():
    return tuple(name for name in VERBS if VERBS[name].past)


@functools.cache
def _determiners(plural, definite):
    names = []
    for name, (forms, known) in DETERMINERS.items():
        if forms["mp" if plural else "m"] and definite in (None, known):
            names += [name] * COMMON.get(name, 1)
    return tuple(names)
