"""Clauses of the phrase grammar, in English and Spanish at once.

Each function builds one sentence pattern from dictionary words, both languages
in the same call, so the two cannot drift apart.
"""

from typing import NamedTuple

import phrase_inflection as inflection
import phrase_lexicon as lexicon
from phrase_nouns import (
    ADJECTIVES,
    HE,
    NounPhrase,
    Phrase,
    connect,
    glue,
    graded,
    join,
)

BE_FORMS = ("am", "is", "are", "are")


class Verb(NamedTuple):
    """One row of `lexicon.VERBS`."""

    past: str
    english_particle: str
    spanish: str
    spanish_particle: str
    subjects: frozenset
    objects: frozenset


VERBS = {
    english: Verb(
        *forms,
        lexicon.expand_classes(subjects),
        lexicon.expand_classes(objects),
    )
    for english, *forms, subjects, objects in lexicon.rows(lexicon.VERBS)
}
AUXILIARIES = {
    name: (english, spanish, particle)
    for name, english, spanish, particle in lexicon.rows(lexicon.AUXILIARIES)
}


def describe(
    subject, adjective, degree=None, negative=False, future=False, also=None
):
    """Returns *subject is adjective*, with *ser* or *estar*.

    Args:
        subject: `NounPhrase`.
        adjective: str, an English adjective.
        degree: str from `lexicon.DEGREES`. Default None.
        negative: bool. Default False.
        future: bool, for *is going to be*. Default False.
        also: str, a second adjective, joined by *and*. Default None.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import noun_phrase, pronoun
    >>> describe(noun_phrase("this", "cat"), "large", "very")
    Phrase(english='this cat is very large', spanish='este gato es muy grande')
    >>> describe(pronoun("she"), "tired", negative=True).spanish
    'ella no está cansada'
    """
    copula = ADJECTIVES[adjective].copula
    tense = "future" if future else "present"
    features = subject.gender, subject.plural
    quality = Phrase(
        glue(degree, adjective), graded(adjective, degree, *features)
    )
    if also is not None:
        second = Phrase(also, graded(also, None, *features))
        quality = connect(quality, "and", second)
    verb = _copula(copula, subject.person, tense, negative)
    return join(subject, verb, quality)


def compare(subject, adjective, other, less=False, negative=False):
    """Returns *subject is as adjective as other*.

    Args:
        subject: `NounPhrase`.
        adjective: str, an English adjective.
        other: `NounPhrase`.
        less: bool, for *less ... than*. Default False.
        negative: bool. Default False.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import noun_phrase
    >>> house, tree = noun_phrase("my", "house"), noun_phrase("the", "tree")
    >>> compare(house, "old", tree).spanish
    'mi casa es tan vieja como el árbol'
    """
    copula = ADJECTIVES[adjective].copula
    form = graded(adjective, None, subject.gender, subject.plural)
    if less:
        middle = Phrase(f"less {adjective} than", f"menos {form} que")
    else:
        middle = Phrase(f"as {adjective} as", f"tan {form} como")
    verb = _copula(copula, subject.person, "present", negative)
    return join(subject, verb, middle, other)


def locate(subject, where, negative=False):
    """Returns *subject is where*.

    Args:
        subject: `NounPhrase`.
        where: `Phrase` from `place`.
        negative: bool. Default False.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import noun_phrase, place
    >>> keys = noun_phrase("the", "key", plural=True)
    >>> locate(keys, place("on", noun_phrase("the", "table"))).spanish
    'las llaves están sobre la mesa'
    """
    verb = _copula("estar", subject.person, "present", negative)
    return join(subject, verb, where)


def exist(thing, where):
    """Returns *there is thing where*.

    Args:
        thing: `NounPhrase`.
        where: `Phrase` from `place`.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import noun_phrase, place
    >>> birds = noun_phrase("two", "bird", plural=True)
    >>> exist(birds, place("in", noun_phrase("the", "garden")))[:2]
    ('there are two birds in the garden', 'hay dos pájaros en el jardín')
    """
    verb = Phrase(glue("there", BE_FORMS[thing.person]), "hay")
    return join(verb, thing, where)


def feel(subject, feeling, degree=None, negative=False):
    """Returns *subject is hungry*, which in Spanish *has hunger*.

    Args:
        subject: `NounPhrase`.
        feeling: str from `lexicon.FEELINGS`.
        degree: str, "very", or None. Default None.
        negative: bool. Default False.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import pronoun
    >>> feel(pronoun("he"), "thirsty", "very").spanish
    'él tiene mucha sed'
    """
    noun, gender = lexicon.FEELINGS[feeling]
    much = "" if degree is None else inflection.agree("mucho", gender, False)
    spanish = inflection.conjugate("tener", "present")[subject.person]
    english = glue(BE_FORMS[subject.person], "not" if negative else "")
    return join(
        subject,
        Phrase(english, glue("no" if negative else "", spanish)),
        Phrase(glue(degree, feeling), glue(much, noun)),
    )


def like(subject, liked, negative=False):
    """Returns *subject likes liked*, which in Spanish *pleases the subject*.

    Args:
        subject: `NounPhrase`.
        liked: `NounPhrase`, the subject of the Spanish verb.
        negative: bool. Default False.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import generic, noun_phrase, pronoun
    >>> like(pronoun("i"), noun_phrase("these", "book", plural=True)).spanish
    'me gustan estos libros'
    >>> like(noun_phrase("the", "boy"), generic("bread"), True)[:2]
    ('the boy does not like bread', 'al niño no le gusta el pan')
    """
    english = _english_verb("like", subject.person, "present", negative)
    spanish = glue(
        "a " + subject.spanish if subject.spanish else "",
        "no" if negative else "",
        lexicon.CLITICS[subject.person],
        inflection.conjugate("gustar", "present")[liked.person],
    )
    return join(Phrase(glue(subject.english, english), spanish), liked)


def infinitive(verb, complement=None):
    """Returns *to verb complement*, an action that can be liked.

    Args:
        verb: str, the base form of an English verb.
        complement: `Phrase` or `NounPhrase`. Default None.

    Returns:
        `NounPhrase`, masculine singular.

    Examples:
    >>> from phrase_nouns import noun_phrase
    >>> infinitive("visit", noun_phrase("my", "aunt"))[:2]
    ('to visit my aunt', 'visitar a mi tía')
    """
    action = Phrase(f"to {verb}", VERBS[verb].spanish)
    return NounPhrase(*_complete(action, verb, complement), "m", HE, False)


def act(
    subject,
    verb,
    complement=None,
    tense="present",
    negative=False,
    frequency=None,
    recipient=None,
):
    """Returns *subject verb complement*.

    Args:
        subject: `NounPhrase`.
        verb: str, the base form of an English verb.
        complement: `Phrase` or `NounPhrase`, object or goal. Default None.
        tense: str: "present", "past" or a name from `lexicon.AUXILIARIES`.
            Default "present".
        negative: bool. Default False.
        frequency: str from `lexicon.FREQUENCIES`. Default None.
        recipient: `NounPhrase` to whom it is given; Spanish says it twice
            (le, a la niña). Default None.

    Returns:
        `Phrase`.

    Examples:
    >>> from phrase_nouns import noun_phrase, pronoun
    >>> act(pronoun("he"), "eat", noun_phrase("the", "soup"), "past", True)[:2]
    ('he did not eat the soup', 'él no comió la sopa')
    >>> act(pronoun("we"), "go", noun_phrase("the", "park"), "future").spanish
    'vamos a ir al parque'
    """
    clitic = lexicon.CLITICS[recipient.person] if recipient else ""
    verb_phrase = Phrase(
        glue(frequency, _english_verb(verb, subject.person, tense, negative)),
        glue(
            lexicon.FREQUENCIES[frequency] if frequency else "",
            "no" if negative else "",
            clitic,
            _spanish_verb(VERBS[verb].spanish, subject.person, tense),
        ),
    )
    sentence = _complete(join(subject, verb_phrase), verb, complement)
    if recipient is None:
        return sentence
    return join(sentence, Phrase("to", "a"), recipient)


def who(person, verb, complement=None):
    """Returns a noun phrase narrowed by *who verb complement*.

    Args:
        person: `NounPhrase`, human.
        verb: str, the base form of an English verb.
        complement: `Phrase` or `NounPhrase`. Default None.

    Returns:
        `NounPhrase` with the features of `person`.

    Examples:
    >>> from phrase_nouns import noun_phrase
    >>> girl, poem = noun_phrase("the", "girl"), noun_phrase("a", "poem")
    >>> who(girl, "read", poem).spanish
    'la niña que lee un poema'
    """
    relative = person._replace(english="who", spanish="que")
    english, spanish = join(person, act(relative, verb, complement))
    return person._replace(english=english, spanish=spanish)


def _copula(copula, person, tense, negative):
    return Phrase(
        _english_verb("be", person, tense, negative),
        glue("no" if negative else "", _spanish_verb(copula, person, tense)),
    )


def _complete(phrase, verb, complement):
    """Adds the particles of `verb` and the personal *a*."""
    if complement is None:
        return phrase
    entry = VERBS[verb]
    particle = entry.spanish_particle
    if getattr(complement, "human", False):
        particle = "a"
    return join(phrase, Phrase(entry.english_particle, particle), complement)


def _english_verb(base, person, tense, negative):
    not_ = "not" if negative else ""
    if tense in AUXILIARIES:
        auxiliary, *rest = AUXILIARIES[tense][0].split()
        finite = _english_verb(auxiliary, person, "present", negative)
        return glue(finite, *rest, base)
    if base == "be":
        return glue(BE_FORMS[person], not_)
    if base == "can":
        return base + not_
    if base == "must":
        return glue(base, not_)
    if tense == "past":
        return f"did not {base}" if negative else VERBS[base].past
    if negative:
        return ("does not " if person == HE else "do not ") + base
    return inflection.english_third_person(base) if person == HE else base


def _spanish_verb(infinitive, person, tense):
    if tense in AUXILIARIES:
        _, auxiliary, particle = AUXILIARIES[tense]
        form = inflection.conjugate(auxiliary, "present")[person]
        return glue(form, particle, infinitive)
    return inflection.conjugate(infinitive, tense)[person]
