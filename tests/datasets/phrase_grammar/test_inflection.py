"""Forms of words, against lists written by hand."""

import itertools

import pytest

from keras_attn.datasets.phrase_grammar.inflection import (
    agree,
    conjugate,
    english_plural,
    spanish_plural,
    third_person,
)
from keras_attn.datasets.phrase_grammar.lexicon import ADJECTIVES

pytestmark = pytest.mark.one_backend

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
PLURALS = """ratón ratones reloj relojes tren trenes avión aviones ciudad
ciudades jardín jardines árbol árboles rey reyes pastel pasteles mujer mujeres
actriz actrices autobús autobuses paraguas paraguas sofá sofás gato gatos"""
ENGLISH_PLURALS = """bus buses mouse mice box boxes church churches library
libraries key keys tomato tomatoes photo photos actress actresses wolf wolves"""
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


def pairs(text):
    return zip(*[iter(text.split())] * 2, strict=True)


def test_conjugation():
    for line in CONJUGATIONS.strip().splitlines():
        verb, *forms = line.split()
        assert conjugate(verb, "present") == tuple(forms[:4])
        assert conjugate(verb, "past") == tuple(forms[4:])


def test_plurals():
    assert all(spanish_plural(noun) == form for noun, form in pairs(PLURALS))
    for noun, plural in pairs(ENGLISH_PLURALS):
        assert english_plural(noun) == plural
    verbs = "eat eats go goes study studies have has play plays wash washes"
    assert all(third_person(verb) == form for verb, form in pairs(verbs))


def test_adjectives():
    for line in ADJECTIVE_FORMS.strip().splitlines():
        forms = line.split()
        cases = itertools.product((False, True), "mf")
        assert [agree(forms[0], g, plural) for plural, g in cases] == forms


def test_states_take_estar():
    for adjective, entry in ADJECTIVES.items():
        expected = "estar" if adjective in STATES else "ser"
        assert entry.copula == expected, adjective
