"""Clauses, in English and Spanish.

Both languages are built by the same call, so that they cannot disagree.
"""

from typing import Any

from keras_attn.datasets.phrase_grammar import inflection
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    AUXILIARIES,
    CLITICS,
    FEELINGS,
    FREQUENCIES,
    VERBS,
)
from keras_attn.datasets.phrase_grammar.noun_phrases import (
    HE,
    NounPhrase,
    Phrase,
    connect,
    inflect,
    join,
    words,
)

BE_FORMS = ("am", "is", "are", "are")


def copular_clause(
    subject: Any,
    adjective: str,
    degree: Any = None,
    is_negative: bool = False,
    is_future: bool = False,
    also: Any = None,
) -> Phrase:
    """Returns "subject is adjective (and also)", with ser or estar."""
    features = subject.gender, subject.is_plural
    predicate = Phrase(
        words(degree, adjective), inflect(adjective, degree, *features)
    )
    if also is not None:
        second = Phrase(also, inflect(also, None, *features))
        predicate = connect(predicate, "and", second)
    tense = "future" if is_future else "present"
    copula = ADJECTIVES[adjective].copula
    verb = _copula(copula, subject.person, tense, is_negative)
    return join(subject, verb, predicate)


def comparative_clause(
    subject: Any,
    adjective: str,
    other: Any,
    is_less: bool = False,
    is_negative: bool = False,
) -> Phrase:
    """Returns "subject is as adjective as other", or "less ... than"."""
    form = inflect(adjective, None, subject.gender, subject.is_plural)
    if is_less:
        middle = Phrase(f"less {adjective} than", f"menos {form} que")
    else:
        middle = Phrase(f"as {adjective} as", f"tan {form} como")
    copula = ADJECTIVES[adjective].copula
    verb = _copula(copula, subject.person, "present", is_negative)
    return join(subject, verb, middle, other)


def locative_clause(
    subject: Any, location: Any, is_negative: bool = False
) -> Phrase:
    """Returns "subject is location", with estar."""
    verb = _copula("estar", subject.person, "present", is_negative)
    return join(subject, verb, location)


def existential_clause(thing: Any, location: Any) -> Phrase:
    """Returns "there is thing location", with hay."""
    verb = Phrase(f"there {BE_FORMS[thing.person]}", "hay")
    return join(verb, thing, location)


def feeling_clause(
    subject: Any, feeling: Any, degree: Any = None, is_negative: bool = False
) -> Phrase:
    """Returns "subject is hungry", with tener; the degree is "very"."""
    noun, gender = FEELINGS[feeling]
    much = "" if degree is None else inflection.agree("mucho", gender, False)
    spanish = inflection.conjugate("tener", "present")[subject.person]
    return join(
        subject,
        Phrase(
            words(BE_FORMS[subject.person], "not" if is_negative else ""),
            words("no" if is_negative else "", spanish),
        ),
        Phrase(words(degree, feeling), words(much, noun)),
    )


def liking_clause(
    subject: Any, liked: Any, is_negative: bool = False
) -> Phrase:
    """Returns "subject likes liked", with gustar.

    In Spanish, `liked` is the subject.
    """
    english = _english_verb("like", subject.person, "present", is_negative)
    spanish = words(
        "a " + subject.spanish if subject.spanish else "",
        "no" if is_negative else "",
        CLITICS[subject.person],
        inflection.conjugate("gustar", "present")[liked.person],
    )
    return join(Phrase(words(subject.english, english), spanish), liked)


def infinitive_phrase(verb: str, complement: Any = None) -> NounPhrase:
    """Returns "to verb complement", as a noun phrase."""
    action = Phrase(f"to {verb}", VERBS[verb].spanish)
    return NounPhrase(*_complete(action, verb, complement), "m", HE, False)


def verb_clause(
    subject: Any,
    verb: str,
    complement: Any = None,
    tense: str = "present",
    is_negative: bool = False,
    frequency: float | None = None,
    recipient: Any = None,
) -> Phrase:
    """Returns "subject verb complement".

    `complement` is an object or a goal. `tense` is "present", "past" or one of
    `AUXILIARIES`. Spanish doubles the recipient: "le ... a la niña".
    """
    clitic = CLITICS[recipient.person] if recipient else ""
    person = subject.person
    predicate = Phrase(
        words(frequency, _english_verb(verb, person, tense, is_negative)),
        words(
            FREQUENCIES[frequency] if frequency else "",
            "no" if is_negative else "",
            clitic,
            _spanish_verb(VERBS[verb].spanish, person, tense),
        ),
    )
    clause = _complete(join(subject, predicate), verb, complement)
    if recipient is None:
        return clause
    return join(clause, Phrase("to", "a"), recipient)


def relative_clause(person: Any, verb: str, complement: Any = None) -> Any:
    """Returns the noun phrase "person who verb complement"."""
    relative = person._replace(english="who", spanish="que")
    english, spanish = join(person, verb_clause(relative, verb, complement))
    return person._replace(english=english, spanish=spanish)


def _copula(copula, person, tense, is_negative):
    return Phrase(
        _english_verb("be", person, tense, is_negative),
        words(
            "no" if is_negative else "", _spanish_verb(copula, person, tense)
        ),
    )


def _complete(phrase, verb, complement):
    """Appends a complement with its prepositions, the personal "a" too."""
    if complement is None:
        return phrase
    spanish = VERBS[verb].spanish_particle
    if getattr(complement, "is_human", False):
        spanish = "a"
    return join(phrase, Phrase(VERBS[verb].particle, spanish), complement)


def _english_verb(base, person, tense, is_negative):
    negation = "not" if is_negative else ""
    if tense in AUXILIARIES:
        auxiliary, *rest = AUXILIARIES[tense].english.split()
        finite = _english_verb(auxiliary, person, "present", is_negative)
        return words(finite, *rest, base)
    if base == "be":
        return words(BE_FORMS[person], negation)
    if base == "can":
        return base + negation
    if base == "must":
        return words(base, negation)
    if tense == "past":
        return f"did not {base}" if is_negative else VERBS[base].past
    if is_negative:
        return f"does not {base}" if person == HE else f"do not {base}"
    return inflection.third_person(base) if person == HE else base


def _spanish_verb(infinitive, person, tense):
    if tense in AUXILIARIES:
        auxiliary = AUXILIARIES[tense]
        form = inflection.conjugate(auxiliary.spanish, "present")[person]
        return words(form, auxiliary.spanish_particle, infinitive)
    return inflection.conjugate(infinitive, tense)[person]
