"""Translation pairs: correct Spanish, one translation, held-out content."""

import collections
import itertools
import re

import pytest

from keras_attn.datasets import SHOWCASE_PAIRS, make_translation_pairs
from keras_attn.datasets.phrase_grammar import held_out, inflection, lexicon
from keras_attn.datasets.phrase_grammar.part_of_speech import tag
from tests.helpers.spanish import PLURALS

# Written by hand, so that the agreement is checked against another source.
MASCULINE = """gato perro caballo pájaro ratón conejo libro poema mapa sombrero
zapato reloj coche tren barco avión museo hotel jardín puente río árbol sofá
hombre niño rey médico estudiante queso café pastel huevo""".split()
FEMININE = """casa mesa cama llave foto lámpara botella camisa puerta ventana
iglesia escuela estación ciudad montaña vaca tortuga serpiente gallina mujer
niña reina actriz leche carne manzana carta novela bicicleta""".split()
NOUNS = {
    form: (gender, number)
    for gender, nouns in (("m", MASCULINE), ("f", FEMININE))
    for noun in nouns
    for number, form in enumerate((noun, PLURALS.get(noun, noun + "s")))
}
FORMS = (("m", 0), ("f", 0), ("m", 1), ("f", 1))
DETERMINERS = {
    word: features
    for row in """el la los las; este esta estos estas; ese esa esos esas;
    nuestro nuestra nuestros nuestras; otro otra otros otras; al; del; un una;
    - - muchos muchas; - - algunos algunas; - - varios varias;
    - - ambos ambas""".split(";")
    for word, features in zip(row.split(), FORMS, strict=False)
}
ADJECTIVES = {
    stem + ending: features
    for stem in """roj blanc negr amarill cansad enferm viej nuev pequeñ hermos
    suci cerrad abiert rot car barat larg fe extrañ""".split()
    for ending, features in zip(("o", "a", "os", "as"), FORMS, strict=True)
}
CONNECTED = re.compile(
    r"(?:\w+ )?\w+ (\w+) (?:no )?(es|está|son|están) "
    r"(?:muy |bastante |demasiado |tan )?(\w+)\b"
)

COMBINATIONS = [
    ({noun, inflection.english_plural(noun)}, adjective)
    for noun, adjective in itertools.product(lexicon.NOUNS, lexicon.ADJECTIVES)
    if held_out.is_held_out(noun, adjective)
]


@pytest.fixture(scope="module")
def pairs():
    first, second = (make_translation_pairs(6000, seed=s) for s in (11, 12))
    return first + second


@pytest.fixture(scope="module")
def others():
    return [
        make_translation_pairs(200, split="validation"),
        make_translation_pairs(400, seed=2, split="test"),
    ]


def test_determiners_and_adjectives_agree_with_nouns(pairs):
    seen = collections.Counter()
    for _, spanish in pairs:
        parts = ["", *spanish.split(), ""]
        triples = zip(parts, parts[1:], parts[2:], strict=False)
        for before, noun, after in triples:
            for table, word in ((DETERMINERS, before), (ADJECTIVES, after)):
                if noun in NOUNS and word in table:
                    assert table[word] == NOUNS[noun], spanish
                    seen[id(table)] += 1
        match = CONNECTED.fullmatch(spanish)
        if match and match[1] in NOUNS:
            assert (match[2] in ("son", "están")) == NOUNS[match[1]][1], spanish
            if match[3] in ADJECTIVES:
                assert ADJECTIVES[match[3]] == NOUNS[match[1]], spanish
                seen["predicate"] += 1
    assert seen[id(DETERMINERS)] > 2500 and seen[id(ADJECTIVES)] > 300
    assert seen["predicate"] > 50


def test_verbs_agree_with_pronouns(pairs):
    persons, seen = {"él": 1, "ella": 1, "ellos": 3}, 0
    forms = {
        form: person
        for verb in lexicon.VERBS.values()
        for tense in ("present", "past")
        for person, form in enumerate(inflection.conjugate(verb.spanish, tense))
        # Also wine, and the "as" of comparisons.
        if form not in ("vino", "como")
    }
    for _, spanish in pairs:
        for subject, form in itertools.pairwise(spanish.split()):
            if subject in persons and form in forms:
                assert forms[form] == persons[subject], spanish
                seen += 1
    assert seen > 600


def test_orthography(pairs):
    for english, spanish in pairs:
        assert not re.search(r"\b(a|de) el\b|\by h?i(?!e)", spanish), spanish
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", english), english
        for sentence in (english, spanish):
            assert 3 <= len(sentence.split()) <= 15
            assert re.fullmatch(r"[a-záéíñóú]+( [a-záéíñóú]+)*", sentence)
    for words in (" e i", " al ", " del "):
        assert any(words in spanish for _, spanish in pairs)


def test_each_sentence_has_one_translation(pairs):
    found = {}
    for english, spanish in pairs:
        assert found.setdefault(english, spanish) == spanish
        # Present and past of "read" are told apart by the time.
        if re.search(r"\b(i|he|she|we|they) read\b", english):
            is_past = re.search("yesterday|last|this morning", english)
            is_present = {"leo", "lee", "leemos", "leen"} & {*spanish.split()}
            assert bool(is_past) != bool(is_present), english


def test_every_word_is_in_training_pairs(pairs, others):
    for side in (0, 1):
        counts = collections.Counter(w for p in pairs for w in p[side].split())
        for pair in itertools.chain(*others, SHOWCASE_PAIRS):
            assert counts.keys() >= {*pair[side].split()}
        if side == 0:
            known = {*lexicon.NOUNS, *lexicon.ADJECTIVES, *lexicon.VERBS}
            assert counts.keys() >= known and min(counts.values()) >= 10


def has_combination(english):
    """Whether a noun, in any form, is in a sentence with a held-out adjective.

    Or with its synonym, whose translation is the same.
    """
    words = set(english.split())
    return any(a in words and words & nouns for nouns, a in COMBINATIONS)


def test_combinations_are_held_out(pairs, others):
    assert ({"cat", "cats"}, "large") in COMBINATIONS
    assert ({"cat", "cats"}, "big") in COMBINATIONS
    assert 70 < len(COMBINATIONS) < 160
    validation, test = others
    for english, _ in (*pairs, *validation):
        assert not has_combination(english), english
    met = sum(has_combination(english) for english, _ in test)
    assert 100 < met < len(test) - 100
    sources = {pair.source for pair in (*pairs, *test)}
    for english, _ in SHOWCASE_PAIRS:
        assert has_combination(english) and english not in sources
    content = {held_out.content_words(source) for source, _ in pairs}
    assert content.isdisjoint(held_out.content_words(s) for s, _ in test)


def test_content_words_are_dictionary_forms():
    found = held_out.content_words("both wolves came from the dirty churches")
    assert found == {"wolf", "come", "dirty", "church"}
    assert held_out.content_words("it closed") == {"close", "closed"}
    large, big = map(held_out.content_words, ("large cats", "a big cat"))
    assert large == big == {"cat", "big"}


def test_the_translation_tells_the_part_of_speech(pairs):
    seen = collections.Counter()
    stems = {"open": ("abiert", "abr"), "closed": ("cerrad", "cerr")}
    for english, spanish in pairs:
        words = english.split()
        for word, (adjective, verb) in stems.items():
            forms = re.findall(rf"\b(?:{adjective}|{verb})", spanish)
            # In other sentences, something else is opened or closed.
            if words.count(word) == len(forms) == 1:
                expected = "ADJ" if forms[0] == adjective else "VERB"
                assert tag(words)[words.index(word)] == expected, english
                seen[word, expected] += 1
    assert len(seen) == 4 and min(seen.values()) > 20
