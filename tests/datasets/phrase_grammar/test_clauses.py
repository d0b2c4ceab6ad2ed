"""Clauses in both languages, against sentences written by hand."""

import pytest

from keras_attn.datasets import SHOWCASE_PAIRS
from keras_attn.datasets.phrase_grammar.clauses import (
    comparative_clause,
    copular_clause,
    existential_clause,
    feeling_clause,
    infinitive_phrase,
    liking_clause,
    locative_clause,
    relative_clause,
    verb_clause,
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

pytestmark = pytest.mark.one_backend


def one(noun, adjective=None, determiner="the"):
    return noun_phrase(determiner, noun, adjective)


def several(noun, adjective=None, determiner="the"):
    return noun_phrase(determiner, noun, adjective, True)


def at(preposition, *args):
    return prepositional_phrase(preposition, one(*args))


ME, HE, SHE, WE, THEY = map(pronoun, ("i", "he", "she", "we", "they"))
YESTERDAY = Phrase("yesterday", "ayer")
TOMORROW = Phrase("tomorrow", "mañana")
MAN = relative_clause(one("man"), "live", one("house", "big"))
# As in `SHOWCASE_PAIRS`.
SHOWN = [
    copular_clause(one("cat", determiner="this"), "large", "very"),
    locative_clause(one("house", "old"), at("near", "river")),
    verb_clause(SHE, "buy", several("shirt", "red", "two"), "want"),
    join(
        YESTERDAY,
        verb_clause(
            one("sister", determiner="my"),
            "read",
            one("letter", "interesting", "a"),
            "past",
        ),
    ),
    join(
        copular_clause(
            several("horse", determiner="these"), "tired", is_negative=True
        ),
        Phrase("today", "hoy"),
    ),
    liking_clause(one("boy"), several("shoe", "black", "these")),
    existential_clause(several("bird", "small", "three"), at("in", "garden")),
    join(
        verb_clause(
            one("teacher", determiner="our"),
            "visit",
            one("museum", "modern"),
            "future",
        ),
        TOMORROW,
    ),
]
BUILT = [
    copular_clause(several("woman", determiner="these"), "tired", "so"),
    copular_clause(coordinate(one("girl"), one("boy")), "sick", None, True),
    copular_clause(coordinate(one("queen"), one("girl")), "happy", "too"),
    copular_clause(SHE, "kind", also="intelligent"),
    copular_clause(several("coat"), "brown"),
    copular_clause(one("beer", determiner="that"), "french"),
    copular_clause(MAN, "young", "quite"),
    join(copular_clause(one("library"), "open", is_future=True), TOMORROW),
    comparative_clause(several("bus"), "dangerous", one("train"), True),
    verb_clause(HE, "eat", one("soup"), is_negative=True),
    join(verb_clause(ME, "look", one("teacher"), "past"), YESTERDAY),
    join(verb_clause(ME, "look", one("key"), "past"), YESTERDAY),
    verb_clause(several("wolf"), "sleep", frequency="never"),
    verb_clause(
        one("actress"),
        "give",
        one("letter", "long", "a"),
        "past",
        recipient=several("neighbor"),
    ),
    verb_clause(WE, "come", one("market"), "have"),
    verb_clause(THEY, "close", one("door"), "can", is_negative=True),
    verb_clause(SHE, "drink", one("milk", "cold", None), "want", True),
    verb_clause(ME, "buy", several("egg", determiner="ten"), "must"),
    existential_clause(
        one("apple", "sweet", "a"), at("under", "table", None, "our")
    ),
    locative_clause(
        several("photo", determiner="my"), at("next to", "hotel"), True
    ),
    liking_clause(WE, generic("cheese")),
    liking_clause(one("grandmother", determiner="her"), generic("cat"), True),
    liking_clause(
        ME, infinitive_phrase("visit", one("uncle", determiner="my"))
    ),
    feeling_clause(several("girl"), "hungry", "very"),
    feeling_clause(ME, "sleepy", is_negative=True),
    connect(verb_clause(HE, "rest"), "because", feeling_clause(HE, "afraid")),
    connect(
        verb_clause(WE, "dance"),
        "and",
        verb_clause(WE, "invite", one("doctor")),
    ),
]
WRITTEN = """
these women are so tired | estas mujeres están tan cansadas
the girl and the boy are not sick | la niña y el niño no están enfermos
the queen and the girl are too happy | \
la reina y la niña están demasiado contentas
she is kind and intelligent | ella es amable e inteligente
the coats are brown | los abrigos son marrones
that beer is french | esa cerveza es francesa
the man who lives in the big house is quite young | \
el hombre que vive en la casa grande es bastante joven
the library is going to be open tomorrow | \
la biblioteca va a estar abierta mañana
the buses are less dangerous than the train | \
los autobuses son menos peligrosos que el tren
he does not eat the soup | él no come la sopa
i looked for the teacher yesterday | busqué al profesor ayer
i looked for the key yesterday | busqué la llave ayer
the wolves never sleep | los lobos nunca duermen
the actress gave a long letter to the neighbors | \
la actriz les dio una carta larga a los vecinos
we have to come from the market | tenemos que venir del mercado
they cannot close the door | ellos no pueden cerrar la puerta
she does not want to drink cold milk | ella no quiere beber leche fría
i must buy ten eggs | debo comprar diez huevos
there is a sweet apple under our table | \
hay una manzana dulce debajo de nuestra mesa
my photos are not next to the hotel | mis fotos no están al lado del hotel
we like cheese | nos gusta el queso
her grandmother does not like cats | a su abuela no le gustan los gatos
i like to visit my uncle | me gusta visitar a mi tío
the girls are very hungry | las niñas tienen mucha hambre
i am not sleepy | no tengo sueño
he rests because he is afraid | él descansa porque él tiene miedo
we dance and we invite the doctor | bailamos e invitamos al médico
""".strip().splitlines()


@pytest.mark.parametrize(
    ("phrase", "written"), [*zip(BUILT, WRITTEN, strict=True)]
)
def test_clauses(phrase, written):
    assert " | ".join(phrase) == written


def test_showcase_pairs_are_sentences_of_the_grammar():
    assert tuple(map(tuple, SHOWN)) == SHOWCASE_PAIRS


def test_human_objects_have_the_personal_a():
    for verb in ("see", "help", "visit", "wait", "find"):
        assert " a la reina" in verb_clause(ME, verb, one("queen")).spanish
    for verb in ("see", "find", "buy"):
        assert " a " not in verb_clause(ME, verb, one("house")).spanish


def test_the_determiner_must_match_the_number():
    with pytest.raises(ValueError, match="`determiner` must match"):
        noun_phrase("these", "cat")
