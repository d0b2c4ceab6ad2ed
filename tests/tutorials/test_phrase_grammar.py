"""The phrase grammar: correct Spanish, one translation, held-out sets."""

import ast
import collections
import doctest
import importlib
import itertools
import pathlib
import re
import sys

import phrase_grammar as grammar
import pytest
from phrase_clauses import (
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
from phrase_inflection import (
    agree,
    conjugate,
    english_plural,
    english_third_person,
    spanish_plural,
)
from phrase_nouns import (
    ADJECTIVES,
    NOUNS,
    Phrase,
    connect,
    coordinate,
    generic,
    join,
    noun_phrase,
    place,
    pronoun,
)
from phrase_sampler import PhraseSampler

pytestmark = pytest.mark.one_backend

TUTORIALS = pathlib.Path(__file__).resolve().parents[2] / "tutorials"
MODULES = sorted(path.stem for path in TUTORIALS.glob("phrase_*.py"))

# Handwritten, so that agreement is checked against an independent source.
MASCULINE = """gato perro caballo pájaro ratón conejo libro poema mapa sombrero
zapato reloj coche tren barco avión museo hotel jardín puente río árbol sofá
hombre niño rey médico estudiante queso café pastel huevo""".split()
FEMININE = """casa mesa cama llave foto lámpara botella camisa puerta ventana
iglesia escuela estación ciudad montaña vaca tortuga serpiente gallina mujer
niña reina actriz leche carne manzana carta novela bicicleta""".split()
PLURAL_BY_HAND = {
    "ratón": "ratones",
    "reloj": "relojes",
    "tren": "trenes",
    "avión": "aviones",
    "hotel": "hoteles",
    "jardín": "jardines",
    "árbol": "árboles",
    "rey": "reyes",
    "pastel": "pasteles",
    "estación": "estaciones",
    "ciudad": "ciudades",
    "mujer": "mujeres",
    "actriz": "actrices",
}
NOUN_FEATURES = {
    form: (gender, number)
    for gender, nouns in (("m", MASCULINE), ("f", FEMININE))
    for noun in nouns
    for number, form in enumerate((noun, PLURAL_BY_HAND.get(noun, noun + "s")))
}
DETERMINER_FEATURES = {
    word: features
    for words in (
        "el la los las",
        "este esta estos estas",
        "ese esa esos esas",
        "nuestro nuestra nuestros nuestras",
        "otro otra otros otras",
        "al - - -",
        "del - - -",
        "un una - -",
        "- - muchos muchas",
        "- - algunos algunas",
        "- - varios varias",
        "- - ambos ambas",
    )
    for word, features in zip(
        words.split(), (("m", 0), ("f", 0), ("m", 1), ("f", 1)), strict=True
    )
}
ADJECTIVE_FEATURES = {
    stem + ending: (gender, number)
    for stem in """roj blanc negr amarill cansad enferm viej nuev pequeñ
    hermos suci cerrad abiert rot car barat larg fe extrañ""".split()
    for ending, gender, number in (
        ("o", "m", 0),
        ("a", "f", 0),
        ("os", "m", 1),
        ("as", "f", 1),
    )
}


@pytest.fixture(scope="module")
def splits():
    return grammar.phrase_splits()


@pytest.fixture(scope="module")
def drawn():
    sentence = PhraseSampler(11).sentence
    return [tuple(sentence()) for _ in range(20_000)]


def the(noun, adjective=None, plural=False, determiner="the", degree=None):
    return noun_phrase(determiner, noun, adjective, plural, degree)


def when(english, spanish):
    return Phrase(english, spanish)


ME, HE, SHE, WE, THEY = map(pronoun, ("i", "he", "she", "we", "they"))
GOLD = [
    (
        describe(the("cat", determiner="this"), "large", "very"),
        "this cat is very large",
        "este gato es muy grande",
    ),
    (
        describe(the("woman", plural=True, determiner="these"), "tired", "so"),
        "these women are so tired",
        "estas mujeres están tan cansadas",
    ),
    (
        describe(coordinate(the("girl"), the("boy")), "sick", negative=True),
        "the girl and the boy are not sick",
        "la niña y el niño no están enfermos",
    ),
    (
        describe(coordinate(the("queen"), the("girl")), "happy", "too"),
        "the queen and the girl are too happy",
        "la reina y la niña están demasiado contentas",
    ),
    (
        describe(SHE, "kind", also="intelligent"),
        "she is kind and intelligent",
        "ella es amable e inteligente",
    ),
    (
        describe(the("coat", plural=True), "brown"),
        "the coats are brown",
        "los abrigos son marrones",
    ),
    (
        describe(the("beer", determiner="that"), "french"),
        "that beer is french",
        "esa cerveza es francesa",
    ),
    (
        describe(
            who(the("man"), "live", the("house", "big")), "young", "quite"
        ),
        "the man who lives in the big house is quite young",
        "el hombre que vive en la casa grande es bastante joven",
    ),
    (
        join(
            describe(the("library"), "open", future=True),
            when("tomorrow", "mañana"),
        ),
        "the library is going to be open tomorrow",
        "la biblioteca va a estar abierta mañana",
    ),
    (
        compare(the("bus", plural=True), "dangerous", the("train"), less=True),
        "the buses are less dangerous than the train",
        "los autobuses son menos peligrosos que el tren",
    ),
    (
        act(HE, "eat", the("soup"), negative=True),
        "he does not eat the soup",
        "él no come la sopa",
    ),
    (
        join(
            act(ME, "look", the("teacher"), "past"), when("yesterday", "ayer")
        ),
        "i looked for the teacher yesterday",
        "busqué al profesor ayer",
    ),
    (
        join(act(ME, "look", the("key"), "past"), when("yesterday", "ayer")),
        "i looked for the key yesterday",
        "busqué la llave ayer",
    ),
    (
        act(the("wolf", plural=True), "sleep", frequency="never"),
        "the wolves never sleep",
        "los lobos nunca duermen",
    ),
    (
        act(
            the("actress"),
            "give",
            the("letter", "long", determiner="a"),
            "past",
            recipient=the("neighbor", plural=True),
        ),
        "the actress gave a long letter to the neighbors",
        "la actriz les dio una carta larga a los vecinos",
    ),
    (
        act(WE, "come", the("market"), "have"),
        "we have to come from the market",
        "tenemos que venir del mercado",
    ),
    (
        act(THEY, "close", the("door"), "can", negative=True),
        "they cannot close the door",
        "ellos no pueden cerrar la puerta",
    ),
    (
        act(SHE, "drink", the("milk", "cold", determiner=None), "want", True),
        "she does not want to drink cold milk",
        "ella no quiere beber leche fría",
    ),
    (
        act(ME, "buy", the("egg", plural=True, determiner="ten"), "must"),
        "i must buy ten eggs",
        "debo comprar diez huevos",
    ),
    (
        exist(
            the("apple", "sweet", determiner="a"),
            place("under", the("table", determiner="our")),
        ),
        "there is a sweet apple under our table",
        "hay una manzana dulce debajo de nuestra mesa",
    ),
    (
        locate(
            the("photo", plural=True, determiner="my"),
            place("next to", the("hotel")),
            negative=True,
        ),
        "my photos are not next to the hotel",
        "mis fotos no están al lado del hotel",
    ),
    (
        like(WE, generic("cheese")),
        "we like cheese",
        "nos gusta el queso",
    ),
    (
        like(the("grandmother", determiner="her"), generic("cat"), True),
        "her grandmother does not like cats",
        "a su abuela no le gustan los gatos",
    ),
    (
        like(ME, infinitive("visit", the("uncle", determiner="my"))),
        "i like to visit my uncle",
        "me gusta visitar a mi tío",
    ),
    (
        feel(the("girl", plural=True), "hungry", "very"),
        "the girls are very hungry",
        "las niñas tienen mucha hambre",
    ),
    (
        feel(ME, "sleepy", negative=True),
        "i am not sleepy",
        "no tengo sueño",
    ),
    (
        connect(act(HE, "rest"), "because", feel(HE, "afraid")),
        "he rests because he is afraid",
        "él descansa porque él tiene miedo",
    ),
    (
        connect(act(WE, "dance"), "and", act(WE, "invite", the("doctor"))),
        "we dance and we invite the doctor",
        "bailamos e invitamos al médico",
    ),
]


@pytest.mark.parametrize(("phrase", "english", "spanish"), GOLD)
def test_gold(phrase, english, spanish):
    assert tuple(phrase) == (english, spanish)


def test_showcase_matches_the_grammar():
    built = [
        describe(the("cat", determiner="this"), "large", "very"),
        locate(the("house", "old"), place("near", the("river"))),
        act(SHE, "buy", the("shirt", "red", True, "two"), "want"),
        join(
            when("yesterday", "ayer"),
            act(
                the("sister", determiner="my"),
                "read",
                the("letter", "interesting", determiner="a"),
                "past",
            ),
        ),
        join(
            describe(
                the("horse", plural=True, determiner="these"),
                "tired",
                negative=True,
            ),
            when("today", "hoy"),
        ),
        like(the("boy"), the("shoe", "black", True, "these")),
        exist(the("bird", "small", True, "three"), place("in", the("garden"))),
        join(
            act(
                the("teacher", determiner="our"),
                "visit",
                the("museum", "modern"),
                "future",
            ),
            when("tomorrow", "mañana"),
        ),
    ]
    assert [tuple(phrase) for phrase in built] == grammar.SHOWCASE


# infinitive, present, past: of i, he, we, they
CONJUGATIONS = """
comer
  como come comemos comen
  comí comió comimos comieron
abrir
  abro abre abrimos abren
  abrí abrió abrimos abrieron
leer
  leo lee leemos leen
  leí leyó leímos leyeron
jugar
  juego juega jugamos juegan
  jugué jugó jugamos jugaron
llegar
  llego llega llegamos llegan
  llegué llegó llegamos llegaron
buscar
  busco busca buscamos buscan
  busqué buscó buscamos buscaron
volver
  vuelvo vuelve volvemos vuelven
  volví volvió volvimos volvieron
mostrar
  muestro muestra mostramos muestran
  mostré mostró mostramos mostraron
perder
  pierdo pierde perdemos pierden
  perdí perdió perdimos perdieron
dormir
  duermo duerme dormimos duermen
  dormí durmió dormimos durmieron
salir
  salgo sale salimos salen
  salí salió salimos salieron
traer
  traigo trae traemos traen
  traje trajo trajimos trajeron
venir
  vengo viene venimos vienen
  vine vino vinimos vinieron
ver
  veo ve vemos ven
  vi vio vimos vieron
dar
  doy da damos dan
  di dio dimos dieron
ir
  voy va vamos van
  fui fue fuimos fueron
"""


def test_conjugation():
    lines = CONJUGATIONS.strip().splitlines()
    for verb, present, past in zip(*[iter(lines)] * 3, strict=True):
        assert conjugate(verb, "present") == tuple(present.split())
        assert conjugate(verb, "past") == tuple(past.split())


def test_plurals():
    for noun, plural in PLURAL_BY_HAND.items():
        assert spanish_plural(noun) == plural
    assert spanish_plural("autobús") == "autobuses"
    assert spanish_plural("paraguas") == "paraguas"
    assert spanish_plural("sofá") == "sofás"
    plurals = {
        "bus": "buses",
        "mouse": "mice",
        "box": "boxes",
        "church": "churches",
        "library": "libraries",
        "key": "keys",
        "tomato": "tomatoes",
        "photo": "photos",
        "actress": "actresses",
    }
    for noun, plural in plurals.items():
        assert english_plural(noun) == plural


def test_adjective_forms():
    forms = {
        "alemán": "alemán alemana alemanes alemanas",
        "marrón": "marrón marrón marrones marrones",
        "gris": "gris gris grises grises",
        "joven": "joven joven jóvenes jóvenes",
        "difícil": "difícil difícil difíciles difíciles",
        "largo": "largo larga largos largas",
        "triste": "triste triste tristes tristes",
    }
    cases = list(itertools.product((False, True), "mf"))
    for adjective, row in forms.items():
        got = [agree(adjective, gender, plural) for plural, gender in cases]
        assert got == row.split()


def test_states_take_estar():
    states = """tired happy sad sick angry busy worried bored nervous ready calm
    wet open closed broken empty full dirty clean cold hot fresh""".split()
    for adjective, entry in ADJECTIVES.items():
        copula = "estar" if adjective in states else "ser"
        assert entry.copula == copula, adjective


def test_determiners_and_adjectives_agree_in_drawn_sentences(drawn):
    seen = collections.Counter()
    for _, spanish in drawn:
        words = spanish.split()
        for before, noun, after in zip(
            ["", *words], words, [*words[1:], ""], strict=False
        ):
            if noun not in NOUN_FEATURES:
                continue
            features = NOUN_FEATURES[noun]
            for kind, word, table in (
                ("determiner", before, DETERMINER_FEATURES),
                ("adjective", after, ADJECTIVE_FEATURES),
            ):
                if word in table:
                    assert table[word] == features, spanish
                    seen[kind] += 1
    assert seen["determiner"] > 4_000
    assert seen["adjective"] > 500


def test_predicates_agree_in_drawn_sentences(drawn):
    pattern = re.compile(
        r"(?:\w+ )?(?P<determiner>\w+) (?P<noun>\w+) (?:no )?"
        r"(?P<copula>es|está|son|están) "
        r"(?:muy |bastante |demasiado |tan )?(?P<adjective>\w+)\b"
    )
    seen = 0
    for _, spanish in drawn:
        match = pattern.fullmatch(spanish)
        if match is None or match["noun"] not in NOUN_FEATURES:
            continue
        features = NOUN_FEATURES[match["noun"]]
        assert (match["copula"] in ("son", "están")) == features[1], spanish
        if match["adjective"] in ADJECTIVE_FEATURES:
            assert ADJECTIVE_FEATURES[match["adjective"]] == features, spanish
            seen += 1
    assert seen > 100


def test_verbs_agree_with_their_subjects(drawn):
    forms = {
        form: person
        for verb in VERBS.values()
        for tense in ("present", "past")
        for person, form in enumerate(conjugate(verb.spanish, tense))
    }
    # "vino" is wine and came; "como" is I eat and the "as" of comparisons.
    for ambiguous in ("vino", "como"):
        del forms[ambiguous]
    persons = {"él": 1, "ella": 1, "ellos": 3}
    seen = 0
    for _, spanish in drawn:
        for subject, form in itertools.pairwise(spanish.split()):
            if subject in persons and form in forms:
                assert forms[form] == persons[subject], spanish
                seen += 1
    assert seen > 1_000


def test_spanish_contracts_and_avoids_hiatus(drawn):
    for _, spanish in drawn:
        assert not re.search(r"\b(a|de) el\b", spanish), spanish
        assert not re.search(r"\by h?i(?!e)", spanish), spanish
    assert any(" e i" in spanish for _, spanish in drawn)
    assert any(" al " in spanish for _, spanish in drawn)
    assert any(" del " in spanish for _, spanish in drawn)


def test_english_articles(drawn):
    for english, _ in drawn:
        assert not re.search(r"\ba [aeiou]", english), english
        assert not re.search(r"\ban [^aeiou]", english), english


def test_human_objects_have_the_personal_a():
    for verb in ("see", "help", "visit", "wait", "find"):
        assert " a la reina" in act(ME, verb, the("queen")).spanish
    for verb in ("see", "find", "buy"):
        assert " a " not in act(ME, verb, the("house")).spanish


def test_each_sentence_has_one_translation(drawn):
    translations = collections.defaultdict(set)
    for english, spanish in drawn:
        translations[english].add(spanish)
    for seed in (1, 2):
        for english, spanish in grammar.generate_pairs(15_000, seed):
            translations[english].add(spanish)
    assert len(translations) > 40_000
    assert all(len(spanish) == 1 for spanish in translations.values())


def test_present_and_past_of_read_are_distinguished(drawn):
    past = ("yesterday", "last", "this morning")
    readings = {"leo", "lee", "leemos", "leen"}
    for english, spanish in drawn:
        if re.search(r"\b(i|he|she|we|they) read\b", english):
            told = any(words in english for words in past)
            assert told != bool(readings & set(spanish.split())), english


def test_shape_of_sentences(drawn):
    for pair in drawn:
        for sentence in pair:
            assert 3 <= len(sentence.split()) <= 15
            assert re.fullmatch(r"[a-záéíñóú]+( [a-záéíñóú]+)*", sentence)
    lengths = collections.Counter(len(english.split()) for english, _ in drawn)
    assert all(lengths[length] for length in range(3, 16))


def test_pairs_are_distinct_and_reproducible():
    pairs = grammar.generate_pairs(3_000, seed=4)
    assert len({english for english, _ in pairs}) == len(pairs) == 3_000
    assert pairs == grammar.generate_pairs(3_000, seed=4)
    assert pairs[:500] == grammar.generate_pairs(500, seed=4)
    assert pairs != grammar.generate_pairs(3_000, seed=5)
    assert grammar.generate_pairs(0) == []


def test_splits_are_reproducible(splits):
    small = grammar.phrase_splits(300, 20, 30, seed=3)
    assert small == grammar.phrase_splits(300, 20, 30, seed=3)
    assert small != grammar.phrase_splits(300, 20, 30, seed=4)
    assert small.train[:10] != splits.train[:10]


def test_sizes_and_vocabulary(splits):
    assert [len(pairs) for pairs in splits] == [20_000, 500, 1_200]
    english, spanish = (
        collections.Counter(
            word for pair in splits.train for word in pair[side].split()
        )
        for side in (0, 1)
    )
    assert 350 <= len(english) <= 550
    assert 500 <= len(spanish)
    assert min(english.values()) >= 25
    assert min(spanish.values()) >= 5
    words = {*ADJECTIVES, *NOUNS, *VERBS}
    words |= {english_third_person(verb) for verb in VERBS}
    words |= {english_plural(name) for name in NOUNS if not NOUNS[name].mass}
    words |= {verb.past for verb in VERBS.values() if verb.past}
    assert words <= set(english)


def test_every_held_out_word_is_known(splits):
    for side in (0, 1):
        known = {w for pair in splits.train for w in pair[side].split()}
        for pair in (*splits.validation, *splits.test, *grammar.SHOWCASE):
            assert set(pair[side].split()) <= known


def test_content_words_of_held_out_sentences_are_new(splits):
    train = {grammar.content_words(english) for english, _ in splits.train}
    bags = {frozenset(english.split()) for english, _ in splits.train}
    for english, _ in (*splits.validation, *splits.test):
        assert grammar.content_words(english) not in train
        assert frozenset(english.split()) not in bags


def test_content_words_are_dictionary_forms():
    english = "yesterday both wolves came from the dirty churches"
    assert grammar.content_words(english) == {
        "wolf",
        "come",
        "dirty",
        "church",
    }
    assert grammar.content_words("the men who have to rest are hungry") == {
        "man",
        "have",
        "rest",
        "hungry",
    }


def test_held_out_combinations_are_not_in_training(splits):
    surface = {
        "cat": {"cat", "cats"},
        "house": {"house", "houses"},
        "shirt": {"shirt", "shirts"},
        "letter": {"letter", "letters"},
        "horse": {"horse", "horses"},
        "shoe": {"shoe", "shoes"},
        "bird": {"bird", "birds"},
        "museum": {"museum", "museums"},
    }
    assert {noun for noun, _ in grammar.CHOSEN_COMBINATIONS} == set(surface)
    for noun, adjective in itertools.product(NOUNS, ADJECTIVES):
        if grammar.is_held_out(noun, adjective):
            surface.setdefault(noun, {noun, english_plural(noun)})
    held_out = [
        (surface[noun], adjective)
        for noun in surface
        for adjective in ADJECTIVES
        if grammar.is_held_out(noun, adjective)
    ]
    assert 70 < len(held_out) < 140
    for english, _ in (*splits.train, *splits.validation):
        words = set(english.split())
        for forms, adjective in held_out:
            assert adjective not in words or not forms & words, english
    new = [e for e, _ in splits.test if grammar.new_combinations(e)]
    assert 300 < len(new) < 900
    met = {pair for e in new for pair in grammar.new_combinations(e)}
    assert len(met) > 60


def test_showcase_is_in_no_split(splits):
    showcase = {english for english, _ in grammar.SHOWCASE}
    for seed in (0, 1):
        pairs = splits if seed == 0 else grammar.phrase_splits(3_000, seed=seed)
        for english, _ in itertools.chain(*pairs):
            assert english not in showcase
    for english in showcase:
        combinations = grammar.new_combinations(english)
        assert grammar.CHOSEN_COMBINATIONS & set(combinations), english


def test_held_out_sentences_do_not_leak_for_any_seed(splits):
    other = grammar.phrase_splits(4_000, 200, 400, seed=9)
    for first, second in ((splits, other), (other, splits)):
        train = {grammar.content_words(english) for english, _ in first.train}
        for english, _ in (*second.validation, *second.test):
            assert grammar.content_words(english) not in train


def test_split_pairs_follows_the_same_rule(splits):
    pairs = [*splits.train[:50], *splits.validation, *splits.test]
    again = grammar.split_pairs([*pairs, *grammar.SHOWCASE])
    assert again.train == splits.train[:50]
    assert again.validation == splits.validation
    assert again.test == splits.test


def test_only_closed_has_two_dictionary_forms():
    forms = collections.defaultdict(set)
    for noun in NOUNS:
        forms[noun].add(noun)
        forms[english_plural(noun)].add(noun)
    for verb, entry in VERBS.items():
        for form in (verb, english_third_person(verb), entry.past):
            forms[form].add(verb)
    for adjective in ADJECTIVES:
        forms[adjective].add(adjective)
    del forms[""]
    double = {form for form, names in forms.items() if len(names) > 1}
    assert double == {"closed"}
    assert grammar.content_words("it closed") == {"close", "closed"}


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="`count`"):
        grammar.generate_pairs(-1)
    with pytest.raises(ValueError, match="negative"):
        grammar.phrase_splits(train=-1)
    with pytest.raises(ValueError, match="`determiner`"):
        noun_phrase("these", "cat")
    with pytest.raises(ValueError, match="pronoun"):
        pronoun("you")


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


# Modules of the grammar and others that use only the standard library.
PLAIN = [*MODULES, "questions"]


@pytest.mark.parametrize("module", PLAIN)
def test_only_the_standard_library_is_imported(module):
    tree = ast.parse((TUTORIALS / f"{module}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            continue
        for name in names:
            assert name in PLAIN or name in sys.stdlib_module_names
