"""Translation pairs: correct Spanish, one translation, held-out content."""

import collections
import itertools
import re

import pytest

from keras_attn.datasets import SHOWCASE_PAIRS, make_translation_pairs
from keras_attn.datasets.phrase_grammar import held_out, inflection, lexicon

pytestmark = pytest.mark.one_backend

# Written by hand, so that the agreement is checked against another source.
MASCULINE = """gato perro caballo pájaro ratón conejo libro poema mapa sombrero
zapato reloj coche tren barco avión museo hotel jardín puente río árbol sofá
hombre niño rey médico estudiante queso café pastel huevo""".split()
FEMININE = """casa mesa cama llave foto lámpara botella camisa puerta ventana
iglesia escuela estación ciudad montaña vaca tortuga serpiente gallina mujer
niña reina actriz leche carne manzana carta novela bicicleta""".split()
PLURALS = dict(
    zip(
        *[
            iter(
                """ratón ratones reloj relojes tren trenes avión aviones hotel
                hoteles jardín jardines árbol árboles rey reyes pastel pasteles
                estación estaciones ciudad ciudades mujer mujeres actriz
                actrices""".split()
            )
        ]
        * 2,
        strict=True,
    )
)
NOUNS = {
    form: (gender, number)
    for gender, nouns in (("m", MASCULINE), ("f", FEMININE))
    for noun in nouns
    for number, form in enumerate((noun, PLURALS.get(noun, noun + "s")))
}
FORMS = (("m", 0), ("f", 0), ("m", 1), ("f", 1))
DETERMINERS = {
    word: features
    for row in """el la los las
        este esta estos estas
        ese esa esos esas
        nuestro nuestra nuestros nuestras
        otro otra otros otras
        al - - -
        del - - -
        un una - -
        - - muchos muchas
        - - algunos algunas
        - - varios varias
        - - ambos ambas""".splitlines()
    for word, features in zip(row.split(), FORMS, strict=True)
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


@pytest.fixture(scope="module")
def pairs():
    return make_translation_pairs(12_000, seed=11)


@pytest.fixture(scope="module")
def test_pairs():
    return make_translation_pairs(600, seed=2, split="test")


def words(pairs, side=0):
    return {word for pair in pairs for word in pair[side].split()}


def test_determiners_and_adjectives_agree_with_nouns(pairs):
    seen = collections.Counter()
    for _, spanish in pairs:
        parts = ["", *spanish.split(), ""]
        for before, noun, after in zip(
            parts, parts[1:], parts[2:], strict=False
        ):
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
    found = dict(pairs)
    for english, spanish in make_translation_pairs(12_000, seed=12):
        assert found.get(english, spanish) == spanish
    # Present and past of "read" are told apart by the time.
    for english, spanish in pairs:
        if re.search(r"\b(i|he|she|we|they) read\b", english):
            is_past = re.search("yesterday|last|this morning", english)
            is_present = {"leo", "lee", "leemos", "leen"} & {*spanish.split()}
            assert bool(is_past) != bool(is_present), english


def test_every_word_is_in_training_pairs(pairs, test_pairs):
    counts = collections.Counter(w for pair in pairs for w in pair[0].split())
    assert min(counts.values()) >= 10
    validation = make_translation_pairs(200, split="validation")
    for side in (0, 1):
        others = words([*test_pairs, *validation, *SHOWCASE_PAIRS], side)
        assert others <= words(pairs, side)
    known = {*lexicon.NOUNS, *lexicon.ADJECTIVES, *lexicon.VERBS}
    assert known <= words(pairs)


def test_combinations_are_held_out(pairs, test_pairs):
    """Neither of the nouns, in any form, is in a sentence with the adjective.

    Nor with its synonym, whose translation is the same.
    """
    plural = inflection.english_plural
    combinations = [
        ({noun, plural(noun)}, adjective)
        for noun, adjective in itertools.product(
            lexicon.NOUNS, lexicon.ADJECTIVES
        )
        if held_out.is_held_out(noun, adjective)
    ]
    assert ({"cat", "cats"}, "large") in combinations
    assert ({"cat", "cats"}, "big") in combinations
    assert 70 < len(combinations) < 160
    met = collections.Counter()
    for split in (pairs, make_translation_pairs(200, split="validation")):
        for english, _ in split:
            bag = set(english.split())
            for nouns, adjective in combinations:
                assert adjective not in bag or not nouns & bag, english
    for english, _ in test_pairs:
        bag = set(english.split())
        met[any(a in bag and nouns & bag for nouns, a in combinations)] += 1
    assert met[True] > 150 and met[False] > 150
    sources = {pair.source for pair in (*pairs, *test_pairs)}
    for english, _ in SHOWCASE_PAIRS:
        bag = set(english.split())
        assert any(a in bag and nouns & bag for nouns, a in combinations)
        assert english not in sources


def test_content_words_are_held_out(pairs, test_pairs):
    train = {frozenset(source.split()) for source, _ in pairs}
    content = {held_out.content_words(source) for source, _ in pairs}
    for source, _ in test_pairs:
        assert frozenset(source.split()) not in train
        assert held_out.content_words(source) not in content


def test_content_words_are_dictionary_forms():
    found = held_out.content_words("both wolves came from the dirty churches")
    assert found == {"wolf", "come", "dirty", "church"}
    assert held_out.content_words("it closed") == {"close", "closed"}
    large, big = map(held_out.content_words, ("large cats", "a big cat"))
    assert large == big == {"cat", "big"}
