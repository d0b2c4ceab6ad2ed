"""Random sentences: which words, in which pattern.

The other modules know the grammar; this one knows what makes sense.
"""

import functools
import itertools
from typing import TYPE_CHECKING

from keras_attn.datasets.phrase_grammar import clauses, lexicon
from keras_attn.datasets.phrase_grammar.inflection import english_plural
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    DETERMINERS,
    NOUNS,
    PREPOSITIONS,
    VERBS,
)
from keras_attn.datasets.phrase_grammar.noun_phrases import (
    Phrase,
    connect,
    coordinate,
    generic,
    join,
    noun_phrase,
    prepositional_phrase,
    pronoun,
)

if TYPE_CHECKING:
    from keras_attn.datasets.stable_random import StableRandom


# Words per sentence, in both languages.
SHORTEST, LONGEST = 3, 15
# Patterns, and how often each is drawn.
PATTERNS = {
    "action": 52,
    "description": 15,
    "comparison": 5,
    "location": 5,
    "existence": 5,
    "preference": 7,
    "feeling": 3,
    "compound": 20,
}
_LIKED = lexicon.kinds("thing food drink animal opening location")
_PEOPLE = frozenset({"human"})
_MOVABLE = lexicon.kinds("human animal object container text vehicle")
_PRONOUNS = ("i", "we") * 4 + ("he", "she") * 2 + ("they",)
_GIVING = ("give", "show")
# "The" and "a" are each as frequent as four other determiners.
_COMMON = {"the": 4, "a": 4}
_SINGULARS = {english_plural(noun): noun for noun in NOUNS}


class SentenceSampler:
    """Draws sentences, nearly uniformly over the lexicon.

    Args:
        random: `StableRandom`.
    """

    def __init__(self, random: "StableRandom") -> None:
        self._random = random
        self._pick = random.choice
        self._happens = random.happens
        self._names = tuple(PATTERNS)
        self._weights = tuple(PATTERNS.values())

    def sentence(self, pattern: str | None = None) -> Phrase:
        """Returns a `Phrase`, of one of `PATTERNS` if it is given."""
        while True:
            name = pattern or self._pick(self._names, self._weights)
            phrase = getattr(self, f"_{name}")()
            lengths = [text.count(" ") + 1 for text in phrase]
            if SHORTEST <= min(lengths) and max(lengths) <= LONGEST:
                if not _repeats(phrase.english):
                    return phrase

    def _action(self):
        verb = self._pick(_VERBS)
        past = 46 if VERBS[verb].past else 0
        tense = self._pick(("present", "past", ""), (30, past, 22))
        tense = tense or self._pick(_AUXILIARIES)
        is_negative = self._happens(0.2)
        frequency = None
        if tense == "present" and not is_negative and self._happens(0.25):
            frequency = self._pick(_FREQUENCIES)
        clause = self._verb_clause(verb, tense, is_negative, frequency)
        if verb in lexicon.MANNER_VERBS and self._happens(0.25):
            clause = join(clause, self._pick(_MANNERS))
        # A lasting state happens at no time.
        is_timeless = not VERBS[verb].past or frequency or self._happens(0.65)
        if tense == "past" or not is_timeless:
            when = tense if tense in _TIMES else "future"
            return self._timed(clause, when)
        return clause

    def _description(self):
        if self._happens(0.15):
            return self._two_adjectives()
        adjective = self._pick(_predicates())
        is_state = ADJECTIVES[adjective].copula == "estar"
        is_future = is_state and self._happens(0.15)
        clause = self._copular_clause(adjective, is_future)
        if is_state and self._happens(0.35):
            return self._timed(clause, "future" if is_future else "state")
        return clause

    def _comparison(self):
        adjective = self._pick(_gradable())
        kinds = ADJECTIVES[adjective].kinds
        # "Less expensive" is idiomatic, "less big" is not.
        is_less = len(adjective) > 5 and self._happens(0.5)
        return clauses.comparative_clause(
            self._subject(kinds, adjective=0.1),
            adjective,
            self._noun_phrase(kinds, True, 0.1),
            is_less=is_less,
            is_negative=not is_less and self._happens(0.2),
        )

    def _location(self):
        return clauses.locative_clause(
            self._subject(_MOVABLE, is_definite=True),
            self._location_phrase(_PREPOSITIONS),
            is_negative=self._happens(0.2),
        )

    def _existence(self):
        thing = self._noun_phrase(_MOVABLE, False)
        return clauses.existential_clause(
            thing, self._location_phrase(_PREPOSITIONS)
        )

    def _preference(self):
        subject = self._subject(_PEOPLE, is_definite=True, pairs=0.0)
        if self._happens(0.35):
            verb = self._pick(_human_verbs())
            complement = self._complement(verb, True)
            liked = clauses.infinitive_phrase(verb, complement)
        elif self._happens(0.4):
            liked = generic(self._pick(_nouns(_LIKED)))
        else:
            liked = self._noun_phrase(_LIKED, True)
        return clauses.liking_clause(subject, liked, self._happens(0.25))

    def _feeling(self):
        clause = self._feeling_clause(
            _PEOPLE | {"animal"},
            "very" if self._happens(0.4) else None,
            self._happens(0.2),
        )
        return self._timed(clause, "state") if self._happens(0.3) else clause

    def _compound(self):
        if self._happens(0.3):
            first = self._verb_clause(self._pick(_past_verbs()), "past")
            second = self._verb_clause(self._pick(_past_verbs()), "past")
            both = connect(first, self._pick(("and", "but")), second)
            return join(self._pick(_TIMES["past"]), both)
        is_negative = self._happens(0.15)
        first = self._verb_clause(self._pick(_VERBS), "present", is_negative)
        conjunction = self._pick(_CONJUNCTIONS)
        kind = self._random.random()
        if kind < 0.15:
            second = self._feeling_clause(_PEOPLE)
        elif kind < 0.35 or conjunction == "because":
            second = self._copular_clause(self._pick(_predicates()))
        else:
            second = self._verb_clause(self._pick(_VERBS), "present")
        return connect(first, conjunction, second)

    def _verb_clause(self, verb, tense, is_negative=False, frequency=None):
        subjects = VERBS[verb].subjects
        subject = self._subject(subjects, is_definite=is_negative or None)
        is_negated = is_negative or frequency == "never"
        complement = self._complement(verb, is_negated)
        recipient = None
        if verb in _GIVING:
            recipient = self._noun_phrase(_PEOPLE, True, 0.1)
        clause = clauses.verb_clause(
            subject, verb, complement, tense, is_negative, frequency, recipient
        )
        if "area" in VERBS[verb].objects or verb in _GIVING:
            return clause
        if self._happens(0.1 if complement else 0.7):
            return join(clause, self._location_phrase(("in", "near", "behind")))
        return clause

    def _copular_clause(self, adjective, is_future=False):
        entry = ADJECTIVES[adjective]
        is_negative = self._happens(0.2)
        subject = self._subject(
            entry.kinds, is_negative or None, relative=0.2, pronouns=0.2
        )
        degree = None
        if entry.is_gradable and self._happens(0.5):
            degree = self._pick(_DEGREES)
        if is_negative and degree == "quite":
            degree = "very"
        return clauses.copular_clause(
            subject, adjective, degree, is_negative, is_future
        )

    def _feeling_clause(self, kinds, degree=None, is_negative=False):
        subject = self._subject(kinds)
        feeling = self._pick(_FEELINGS)
        return clauses.feeling_clause(subject, feeling, degree, is_negative)

    def _two_adjectives(self):
        adjective, also = self._pick(_compatible_adjectives())
        kinds = ADJECTIVES[adjective].kinds & ADJECTIVES[also].kinds
        subject = self._subject(kinds, adjective=0.0)
        return clauses.copular_clause(subject, adjective, also=also)

    def _subject(
        self,
        kinds,
        is_definite=None,
        adjective=0.25,
        relative=0.0,
        pronouns=0.6,
        pairs=0.12,
    ):
        """Draws a subject; the floats are probabilities of its forms."""
        if "human" in kinds and self._happens(pronouns):
            return pronoun(self._pick(_PRONOUNS))
        noun = self._pick(_nouns(kinds))
        if self._happens(pairs):
            other = self._pick(_nouns(frozenset({NOUNS[noun].kind})))
            if other != noun:
                return coordinate(
                    self._inflected(noun, True, 0.0),
                    self._inflected(other, True, 0.0),
                )
        subject = self._inflected(noun, is_definite, adjective)
        if subject.is_human and self._happens(relative):
            verb = self._pick(_human_verbs())
            complement = self._complement(verb, False)
            return clauses.relative_clause(subject, verb, complement)
        return subject

    def _complement(self, verb, is_negative):
        """Draws an object or goal: definite if negative or human."""
        if not VERBS[verb].objects:
            return None
        noun = self._pick(_nouns(VERBS[verb].objects))
        kind = NOUNS[noun].kind
        is_definite = is_negative or kind == "human" or None
        first = self._inflected(noun, is_definite, bare=0.6)
        if kind in ("food", "drink", "clothes") and self._happens(0.2):
            other = self._pick(_nouns(frozenset({kind})))
            second = self._inflected(other, is_definite, 0.0, bare=0.6)
            return coordinate(first, second) if other != noun else first
        return first

    def _location_phrase(self, prepositions):
        preposition = self._pick(prepositions)
        kinds = PREPOSITIONS[preposition].kinds
        noun = self._noun_phrase(kinds, None, 0.25, plural=0.2)
        return prepositional_phrase(preposition, noun)

    def _noun_phrase(self, kinds, *args, **kwargs):
        return self._inflected(self._pick(_nouns(kinds)), *args, **kwargs)

    def _inflected(
        self, noun, is_definite, adjective=0.35, plural=0.45, bare=0.0
    ):
        """Draws the determiner, number and adjective of a noun.

        `is_definite` is True, False, or None for either. The floats are the
        probabilities of an adjective, of the plural, and of a mass noun without
        a determiner.
        """
        is_mass = NOUNS[noun].is_mass
        is_plural = not is_mass and self._happens(plural)
        determiners = _determiners(is_plural, is_mass or is_definite)
        determiner = self._pick(determiners)
        if is_mass and self._happens(bare):
            determiner = None
        name = degree = None
        if self._happens(adjective):
            name = self._pick(_attributes(NOUNS[noun].kind))
            if ADJECTIVES[name].is_gradable and self._happens(0.15):
                degree = "very"
        return noun_phrase(determiner, noun, name, is_plural, degree)

    def _timed(self, clause, tense):
        when = self._pick(_TIMES[tense])
        is_first = self._happens(0.4)
        return join(when, clause) if is_first else join(clause, when)


_VERBS = tuple(VERBS)
_AUXILIARIES = tuple(lexicon.AUXILIARIES)
_CONJUNCTIONS = tuple(lexicon.CONJUNCTIONS)
_DEGREES = tuple(lexicon.DEGREES)
_FEELINGS = tuple(lexicon.FEELINGS)
_FREQUENCIES = tuple(lexicon.FREQUENCIES)
_PREPOSITIONS = tuple(PREPOSITIONS)
_MANNERS = tuple(Phrase(*item) for item in lexicon.MANNERS.items())
_TIMES = {
    tense: tuple(Phrase(*item) for item in times.items())
    for tense, times in lexicon.TIMES.items()
}


def _repeats(english):
    """Whether a noun or adjective occurs twice ("a sick bird is sick")."""
    words = [_SINGULARS.get(word, word) for word in english.split()]
    words = [word for word in words if word in NOUNS or word in ADJECTIVES]
    return len(set(words)) < len(words)


@functools.cache
def _nouns(kinds):
    return tuple(name for name, noun in NOUNS.items() if noun.kind in kinds)


@functools.cache
def _attributes(kind):
    return tuple(
        name
        for name, adjective in ADJECTIVES.items()
        if adjective.is_attributive and kind in adjective.kinds
    )


@functools.cache
def _predicates():
    """Adjectives; three times those that are never attributive."""
    names = []
    for name, adjective in ADJECTIVES.items():
        names += [name] * (1 if adjective.is_attributive else 3)
    return tuple(names)


@functools.cache
def _gradable():
    return tuple(name for name in ADJECTIVES if ADJECTIVES[name].is_gradable)


@functools.cache
def _compatible_adjectives():
    return tuple(
        (first, second)
        for first, second in itertools.permutations(_gradable(), 2)
        if ADJECTIVES[first].copula == ADJECTIVES[second].copula == "ser"
        and ADJECTIVES[first].kinds & ADJECTIVES[second].kinds
        and not any({first, second} <= scale for scale in lexicon.SCALES)
    )


@functools.cache
def _human_verbs():
    return tuple(
        name
        for name, verb in VERBS.items()
        if "human" in verb.subjects and name not in _GIVING
    )


@functools.cache
def _past_verbs():
    return tuple(name for name in VERBS if VERBS[name].past)


@functools.cache
def _determiners(is_plural, is_definite):
    names = []
    for name, determiner in DETERMINERS.items():
        if determiner.forms["mp" if is_plural else "m"]:
            if is_definite in (None, determiner.is_definite):
                names += [name] * _COMMON.get(name, 1)
    return tuple(names)
