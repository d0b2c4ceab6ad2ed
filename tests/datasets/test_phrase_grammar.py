"""Clauses and inflected words, against text written by hand."""

import itertools

import pytest

from keras_attn.datasets import SHOWCASE_PAIRS
from keras_attn.datasets.phrase_grammar import clauses, inflection
from keras_attn.datasets.phrase_grammar import noun_phrases as phrases
from keras_attn.datasets.phrase_grammar.lexicon import ADJECTIVES, NOUNS
from keras_attn.datasets.phrase_grammar.noun_phrases import Phrase
from tests.helpers.spanish import PLURALS

SINGULARS = {inflection.english_plural(noun): noun for noun in NOUNS}


def noun(text):
    """Parses a determiner (or -), an adjective if there is one, and a noun."""
    determiner, *adjective, word = text.split()
    determiner, is_plural = determiner.strip("-") or None, word not in NOUNS
    word = SINGULARS[word] if is_plural else word
    adjective = adjective[0] if adjective else None
    return phrases.noun_phrase(determiner, word, adjective, is_plural)


def at(preposition, text):
    return phrases.prepositional_phrase(preposition, noun(text))


be, locate = clauses.copular_clause, clauses.locative_clause
do, exist = clauses.verb_clause, clauses.existential_clause
feel, like = clauses.feeling_clause, clauses.liking_clause
both, join = phrases.coordinate, phrases.join
compare, connect = clauses.comparative_clause, phrases.connect
ME, HE, SHE, WE, THEY = map(phrases.pronoun, "i he she we they".split())
YESTERDAY, TODAY = Phrase("yesterday", "ayer"), Phrase("today", "hoy")
TOMORROW = Phrase("tomorrow", "mañana")
MAN = clauses.relative_clause(noun("the man"), "live", noun("the big house"))
MUSEUM, LETTER = noun("the modern museum"), noun("a interesting letter")
LONG, NEIGHBORS = noun("a long letter"), noun("the neighbors")
BUILT = [
    # As in `SHOWCASE_PAIRS`.
    be(noun("this cat"), "large", "very"),
    locate(noun("the old house"), at("near", "the river")),
    do(SHE, "buy", noun("two red shirts"), "want"),
    join(YESTERDAY, do(noun("my sister"), "read", LETTER, "past")),
    join(be(noun("these horses"), "tired", is_negative=True), TODAY),
    like(noun("the boy"), noun("these black shoes")),
    exist(noun("three small birds"), at("in", "the garden")),
    join(do(noun("our teacher"), "visit", MUSEUM, "future"), TOMORROW),
    # As written below.
    be(noun("these women"), "tired", "so"),
    be(both(noun("the girl"), noun("the boy")), "sick", None, True),
    be(both(noun("the queen"), noun("the girl")), "happy", "too"),
    be(SHE, "kind", also="intelligent"),
    be(noun("the coats"), "brown"),
    be(noun("that beer"), "french"),
    be(MAN, "young", "quite"),
    join(be(noun("the library"), "open", is_future=True), TOMORROW),
    compare(noun("the buses"), "dangerous", noun("the train"), is_less=True),
    do(HE, "eat", noun("the soup"), is_negative=True),
    join(do(ME, "look", noun("the teacher"), "past"), YESTERDAY),
    join(do(ME, "look", noun("the key"), "past"), YESTERDAY),
    do(noun("the wolves"), "sleep", frequency="never"),
    do(noun("the actress"), "give", LONG, "past", recipient=NEIGHBORS),
    do(WE, "come", noun("the market"), "have"),
    do(THEY, "close", noun("the door"), "can", is_negative=True),
    do(SHE, "drink", noun("- cold milk"), "want", True),
    do(ME, "buy", noun("ten eggs"), "must"),
    exist(noun("a sweet apple"), at("under", "our table")),
    locate(noun("my photos"), at("next to", "the hotel"), True),
    like(WE, phrases.generic("cheese")),
    like(noun("her grandmother"), phrases.generic("cat"), True),
    like(ME, clauses.infinitive_phrase("visit", noun("my uncle"))),
    feel(noun("the girls"), "hungry", "very"),
    feel(ME, "sleepy", is_negative=True),
    connect(do(HE, "rest"), "because", feel(HE, "afraid")),
    connect(do(WE, "dance"), "and", do(WE, "invite", noun("the doctor"))),
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
EXPECTED = [*map(" | ".join, SHOWCASE_PAIRS), *WRITTEN]


@pytest.mark.parametrize(
    ("phrase", "written"), [*zip(BUILT, EXPECTED, strict=True)]
)
def test_clauses(phrase, written):
    assert " | ".join(phrase) == written


def test_noun_phrases():
    # Human objects have the personal "a".
    for verb in ("see", "help", "visit", "wait", "find"):
        assert " a la reina" in do(ME, verb, noun("the queen")).spanish
    for verb in ("see", "find", "buy"):
        assert " a " not in do(ME, verb, noun("the house")).spanish
    with pytest.raises(ValueError, match="`determiner` must match"):
        noun("these cat")


# Infinitive, present, past: of i, he, we, they.
CONJUGATIONS = """
comer como come comemos comen comí comió comimos comieron
abrir abro abre abrimos abren abrí abrió abrimos abrieron
leer leo lee leemos leen leí leyó leímos leyeron
jugar juego juega jugamos juegan jugué jugó jugamos jugaron
llegar llego llega llegamos llegan llegué llegó llegamos llegaron
buscar busco busca buscamos buscan busqué buscó buscamos buscaron
volver vuelvo vuelve volvemos vuelven volví volvió volvimos volvieron
mostrar muestro muestra mostramos muestran mostré mostró mostramos mostraron
perder pierdo pierde perdemos pierden perdí perdió perdimos perdieron
dormir duermo duerme dormimos duermen dormí durmió dormimos durmieron
salir salgo sale salimos salen salí salió salimos salieron
traer traigo trae traemos traen traje trajo trajimos trajeron
venir vengo viene venimos vienen vine vino vinimos vinieron
ver veo ve vemos ven vi vio vimos vieron
dar doy da damos dan di dio dimos dieron
ir voy va vamos van fui fue fuimos fueron
"""
ENGLISH_PLURALS = """bus buses mouse mice box boxes church churches library
libraries key keys tomato tomatoes photo photos actress actresses wolf wolves"""
THIRD_PERSONS = "eat eats go goes study studies have has play plays wash washes"
# Masculine, feminine, and their plurals.
ADJECTIVE_FORMS = """
alemán alemana alemanes alemanas
francés francesa franceses francesas
marrón marrón marrones marrones
gris gris grises grises
joven joven jóvenes jóvenes
difícil difícil difíciles difíciles
largo larga largos largas
triste triste tristes tristes
"""
STATES = """tired happy sad sick angry busy worried bored nervous ready calm wet
open closed broken empty full dirty clean cold hot fresh""".split()


def test_conjugation():
    for line in CONJUGATIONS.strip().splitlines():
        verb, *forms = line.split()
        assert inflection.conjugate(verb, "present") == tuple(forms[:4])
        assert inflection.conjugate(verb, "past") == tuple(forms[4:])


def test_plurals_and_third_persons():
    for noun, plural in PLURALS.items():
        assert inflection.spanish_plural(noun) == plural
    words = ENGLISH_PLURALS.split()
    assert [*map(inflection.english_plural, words[::2])] == words[1::2]
    words = THIRD_PERSONS.split()
    assert [*map(inflection.third_person, words[::2])] == words[1::2]


def test_adjectives():
    for line in ADJECTIVE_FORMS.strip().splitlines():
        first, *_ = forms = line.split()
        cases = itertools.product((False, True), "mf")
        found = [inflection.agree(first, g, plural) for plural, g in cases]
        assert found == forms
    found = {word: entry.copula for word, entry in ADJECTIVES.items()}
    estar = dict.fromkeys(STATES, "estar")
    assert found == dict.fromkeys(ADJECTIVES, "ser") | estar
