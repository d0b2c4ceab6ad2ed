"""Forms of the words of the phrase grammar: plurals, genders, verb endings.

All by rule: an exception has to be written down here to exist.
"""

import functools

ENGLISH_PLURALS = {
    "man": "men",
    "woman": "women",
    "mouse": "mice",
    "knife": "knives",
    "wolf": "wolves",
    "tomato": "tomatoes",
}
SPANISH_PLURALS = {"joven": "jóvenes", "paraguas": "paraguas"}
# The ending carries the stress of francés, so more syllables drop the accent.
STRESSED_ENDINGS = {"án": "an", "és": "es", "ín": "in", "ón": "on", "ús": "us"}

ENDINGS = {
    ("present", "ar"): "o a amos an",
    ("present", "er"): "o e emos en",
    ("present", "ir"): "o e imos en",
    ("past", "ar"): "é ó amos aron",
    ("past", "er"): "í ió imos ieron",
    ("past", "ir"): "í ió imos ieron",
}
# The stem where the stress falls on it: cerrar, cierro but cerramos.
STRESSED_STEMS = {
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
# Keeps the sound of the stem before é: buscar, busqué.
SPELLINGS = {"car": "qué", "gar": "gué", "zar": "cé"}
IRREGULAR_FORMS = {
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


def english_plural(noun):
    """Returns the plural of an English noun.

    Args:
        noun: str, the singular.

    Returns:
        Str, the plural.

    Examples:
    >>> [english_plural(noun) for noun in ("cat", "box", "city", "knife")]
    ['cats', 'boxes', 'cities', 'knives']
    """
    if noun in ENGLISH_PLURALS:
        return ENGLISH_PLURALS[noun]
    return _add_s(noun)


def english_third_person(verb):
    """Returns the form of an English verb that goes with *he*.

    Args:
        verb: str, the base form.

    Returns:
        Str, the third person singular of the present.

    Examples:
    >>> [english_third_person(verb) for verb in ("eat", "go", "study", "have")]
    ['eats', 'goes', 'studies', 'has']
    """
    return {"have": "has", "go": "goes"}.get(verb) or _add_s(verb)


def spanish_plural(word):
    """Returns the plural of a Spanish noun or adjective.

    Args:
        word: str, the singular.

    Returns:
        Str, the plural.

    Examples:
    >>> [spanish_plural(word) for word in ("gato", "ciudad", "actriz", "ratón")]
    ['gatos', 'ciudades', 'actrices', 'ratones']
    """
    if word in SPANISH_PLURALS:
        return SPANISH_PLURALS[word]
    if word[-1] in "aeoáéó":
        return word + "s"
    if word[-1] == "z":
        return word[:-1] + "ces"
    return _unstressed(word) + "es"


@functools.cache
def agree(adjective, gender, plural):
    """Returns the form of a Spanish adjective that agrees with its noun.

    Args:
        adjective: str, the masculine singular.
        gender: str, "m" or "f", that of the noun.
        plural: bool, whether the noun is plural.

    Returns:
        Str, the adjective in that gender and number.

    Examples:
    >>> agree("rojo", "f", True), agree("verde", "f", False)
    ('rojas', 'verde')
    >>> agree("francés", "f", False), agree("marrón", "f", False)
    ('francesa', 'marrón')
    """
    if gender == "f":
        if adjective.endswith("o"):
            adjective = adjective[:-1] + "a"
        elif adjective.endswith(("és", "án")):
            adjective = _unstressed(adjective) + "a"
    return spanish_plural(adjective) if plural else adjective


@functools.cache
def conjugate(infinitive, tense):
    """Returns the Spanish verb forms for *i*, *he*, *we* and *they*.

    Args:
        infinitive: str, ending in ar, er or ir.
        tense: str, "present" or "past" (the preterite).

    Returns:
        Tuple of four str.

    Examples:
    >>> conjugate("cerrar", "present")
    ('cierro', 'cierra', 'cerramos', 'cierran')
    >>> conjugate("buscar", "past")
    ('busqué', 'buscó', 'buscamos', 'buscaron')
    """
    if (infinitive, tense) in IRREGULAR_FORMS:
        return tuple(IRREGULAR_FORMS[infinitive, tense].split())
    stem = infinitive[:-2]
    i, he, we, they = ENDINGS[tense, infinitive[-2:]].split()
    if tense == "present":
        stressed = STRESSED_STEMS.get(infinitive, stem)
        return stressed + i, stressed + he, stem + we, stressed + they
    first = stem + i
    if infinitive[-3:] in SPELLINGS:
        first = infinitive[:-3] + SPELLINGS[infinitive[-3:]]
    return first, stem + he, stem + we, stem + they


def _add_s(word):
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word[-1] == "y" and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _unstressed(word):
    return word[:-2] + STRESSED_ENDINGS.get(word[-2:], word[-2:])
