"""Inflected forms: plurals, agreement of adjectives, conjugation."""

import functools
from typing import Any

_ENGLISH_PLURALS = {
    "man": "men",
    "woman": "women",
    "mouse": "mice",
    "knife": "knives",
    "wolf": "wolves",
    "tomato": "tomatoes",
}
_SPANISH_PLURALS = {"joven": "jóvenes", "paraguas": "paraguas"}
# Endings lose their accent when the word gets another syllable.
_STRESSED_ENDINGS = {
    "án": "an",
    "és": "es",
    "ín": "in",
    "ón": "on",
    "ús": "us",
}

# Of the persons i, he, we, they.
_ENDINGS = {
    ("present", "ar"): "o a amos an",
    ("present", "er"): "o e emos en",
    ("present", "ir"): "o e imos en",
    ("past", "ar"): "é ó amos aron",
    ("past", "er"): "í ió imos ieron",
    ("past", "ir"): "í ió imos ieron",
}
# Stems that change where they are stressed: cierro, but cerramos.
_STRESSED_STEMS = {
    "cerrar": "cierr",
    "dormir": "duerm",
    "encontrar": "encuentr",
    "jugar": "jueg",
    "mostrar": "muestr",
    "perder": "pierd",
    "poder": "pued",
    "querer": "quier",
    "volver": "vuelv",
}
# Spellings that keep the sound of the stem before é: busqué.
_SPELLINGS = {"car": "qué", "gar": "gué", "zar": "cé"}
_IRREGULAR_FORMS = {
    ("dar", "present"): "doy da damos dan",
    ("dar", "past"): "di dio dimos dieron",
    ("dormir", "past"): "dormí durmió dormimos durmieron",
    ("estar", "present"): "estoy está estamos están",
    ("ir", "present"): "voy va vamos van",
    ("ir", "past"): "fui fue fuimos fueron",
    ("leer", "past"): "leí leyó leímos leyeron",
    ("salir", "present"): "salgo sale salimos salen",
    ("ser", "present"): "soy es somos son",
    ("tener", "present"): "tengo tiene tenemos tienen",
    ("traer", "present"): "traigo trae traemos traen",
    ("traer", "past"): "traje trajo trajimos trajeron",
    ("venir", "present"): "vengo viene venimos vienen",
    ("venir", "past"): "vine vino vinimos vinieron",
    ("ver", "present"): "veo ve vemos ven",
    ("ver", "past"): "vi vio vimos vieron",
}


@functools.cache
def english_plural(noun: Any) -> Any:
    """Returns the plural of an English noun."""
    return _ENGLISH_PLURALS.get(noun) or _add_s(noun)


@functools.cache
def third_person(verb: str) -> Any:
    """Returns the form of an English verb after "he"."""
    return {"have": "has", "go": "goes"}.get(verb) or _add_s(verb)


@functools.cache
def spanish_plural(word: str) -> Any:
    """Returns the plural of a Spanish noun or adjective."""
    if word in _SPANISH_PLURALS:
        return _SPANISH_PLURALS[word]
    if word[-1] in "aeoáéó":
        return word + "s"
    if word[-1] == "z":
        return word[:-1] + "ces"
    return _unstressed(word) + "es"


@functools.cache
def agree(adjective: str, gender: Any, is_plural: Any) -> Any:
    """Returns a Spanish adjective in a gender ("m" or "f") and number."""
    if gender == "f":
        if adjective.endswith("o"):
            adjective = adjective[:-1] + "a"
        elif adjective.endswith(("és", "án")):
            adjective = _unstressed(adjective) + "a"
    return spanish_plural(adjective) if is_plural else adjective


@functools.cache
def conjugate(infinitive: Any, tense: Any) -> Any:
    """Returns a Spanish verb in the present or the past (the preterite).

    A tuple of four str: the forms of "i", "he", "we" and "they".
    """
    if (infinitive, tense) in _IRREGULAR_FORMS:
        return tuple(_IRREGULAR_FORMS[infinitive, tense].split())
    stem = infinitive[:-2]
    i, he, we, they = _ENDINGS[tense, infinitive[-2:]].split()
    if tense == "present":
        stressed = _STRESSED_STEMS.get(infinitive, stem)
        return stressed + i, stressed + he, stem + we, stressed + they
    first = stem + i
    if infinitive[-3:] in _SPELLINGS:
        first = infinitive[:-3] + _SPELLINGS[infinitive[-3:]]
    return first, stem + he, stem + we, stem + they


def _add_s(word):
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word[-1] == "y" and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _unstressed(word):
    return word[:-2] + _STRESSED_ENDINGS.get(word[-2:], word[-2:])
