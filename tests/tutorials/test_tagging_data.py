"""Data of the tagging tutorial: tags, treebanks, ids, baselines."""

import doctest
import gzip

import corpora
import numpy as np
import phrase_grammar
import phrase_tags
import pytest
import treebank
import word_table
from tag_baselines import SuffixTagger
from tagged_batches import tagged_batches
from tagged_phrases import tagged_phrases
from word_table import WordTable

pytestmark = pytest.mark.one_backend

# Prefixes of the Spanish word as an adjective and as a verb.
AMBIGUOUS = {"open": ("abiert", "abr"), "closed": ("cerrad", "cerr")}
CONLLU = """# text = Dogs don't bark
1\tDogs\tdog\tNOUN\tNNS\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tbark\tbark\tVERB\tVB\t_\t0\troot\t_\t_
4.1\tbark\tbark\tVERB\tVB\t_\t_\t_\t_\t_

1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
"""
SENTENCES = [
    [("Dogs", "NOUN"), ("do", "AUX"), ("n't", "PART"), ("bark", "VERB")],
    [("Go", "VERB")],
]


@pytest.fixture(scope="module")
def pairs():
    return phrase_grammar.generate_pairs(6000, seed=5)


def test_every_word_of_the_grammar_has_a_tag(pairs):
    assert doctest.testmod(phrase_tags).failed == 0
    seen = set()
    for english, _ in pairs:
        found = phrase_tags.tags(english)
        assert len(found) == len(english.split())
        seen.update(found)
    assert seen == {
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET"),
        *("NOUN", "NUM", "PART", "PRON", "SCONJ", "VERB"),
    }


@pytest.mark.parametrize("word", AMBIGUOUS)
def test_translation_disambiguates_tags(word, pairs):
    adjective, verb = AMBIGUOUS[word]
    told = {"ADJ": 0, "VERB": 0}
    for english, spanish in pairs:
        words = english.split()
        if words.count(word) != 1:
            continue
        forms = [
            form.startswith(adjective)
            for form in spanish.split()
            if form.startswith(verb) or form.startswith(adjective)
        ]
        if len(forms) != 1:
            continue  # Another object is opened or closed.
        expected = "ADJ" if forms[0] else "VERB"
        assert phrase_tags.tags(english)[words.index(word)] == expected, english
        told[expected] += 1
    assert min(told.values()) > 20


def test_unknown_word_raises():
    with pytest.raises(ValueError, match=r"of the grammar.*'spaceship'"):
        phrase_tags.tags("the spaceship is red")


@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz"])
def test_read_treebank(name, tmp_path):
    path, content = tmp_path / name, CONLLU.encode("utf-8")
    zipped = name.endswith(".gz")
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert treebank.read_tagged(path) == SENTENCES


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "there is no sentence with tags"),
        ("# only a comment\n\n", "there is no sentence with tags"),
        ("1\tDogs\n", "Line 1 of .* has no tab-separated columns"),
        ("# one\n1 Dogs dog NOUN\n", "Line 2 of .* has no tab-separated"),
    ],
)
def test_invalid_treebanks_raise(content, said, tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(corpora.CorpusError, match=said):
        treebank.read_tagged(path)


def test_words_and_characters_get_ids():
    table = WordTable.of_sentences(SENTENCES, least=1)
    assert table.words == ["bark", "do", "dogs", "go", "n't"]
    assert table.tags == ["AUX", "NOUN", "PART", "VERB"]
    assert table.sizes == (7, len(set("Dogsdon'tbarkGo")) + 2, 5)
    inputs = table.encode([["DOGS", "bite"], ["do"]])
    assert inputs["token_ids"].tolist() == [[4, word_table.UNKNOWN], [3, 0]]
    characters = inputs["character_ids"]
    assert characters.shape == (2, 2, word_table.LONGEST_WORD)
    spelt = [table.characters[i - 2] for i in characters[1, 0] if i]
    assert spelt == ["d", "o"]
    assert (characters[0, 0, :4] == word_table.UNKNOWN).tolist() == [
        *(False, True, False, True)
    ]
    labels = table.labels(SENTENCES)
    assert labels.tolist() == [[2, 1, 3, 4], [4, 0, 0, 0]]
    assert table.names(labels, [4, 1]) == [
        [tag for _, tag in sentence] for sentence in SENTENCES
    ]


def test_rare_words_are_unknown():
    table = WordTable.of_sentences([*SENTENCES, SENTENCES[1]], least=2)
    assert table.words == ["go"]


def test_long_word_is_truncated():
    table = WordTable.of_sentences(SENTENCES)
    characters = table.encode([["bark" * 9]])["character_ids"]
    assert characters.shape == (1, 1, word_table.LONGEST_WORD)
    assert characters.all()


def test_table_roundtrip(tmp_path):
    table = WordTable.of_sentences(SENTENCES, least=1)
    table.save(tmp_path / "words.json")
    loaded = WordTable.load(tmp_path / "words.json")
    assert loaded.sizes == table.sizes
    for name, array in table.encode([["Dogs", "bite"]]).items():
        np.testing.assert_array_equal(
            loaded.encode([["Dogs", "bite"]])[name], array
        )


def test_batches_match_the_table():
    sentences = [[(f"w{i}", "X")] * (1 + i % 7) for i in range(23)]
    table = WordTable.of_sentences(sentences, least=1)
    batches = tagged_batches(table, sentences, 4, buckets=3)
    expected = table.encode([[w for w, _ in s] for s in sentences])
    known = {row[0]: np.count_nonzero(row) for row in expected["token_ids"]}
    seen = set()
    for inputs, labels in (batches[i] for i in range(len(batches))):
        tokens, characters = inputs["token_ids"], inputs["character_ids"]
        assert tokens.shape == labels.shape == characters.shape[:2]
        np.testing.assert_array_equal(tokens != 0, labels != 0)
        np.testing.assert_array_equal(tokens != 0, characters.any(-1))
        for row in tokens:
            assert np.count_nonzero(row) == known[row[0]]
            seen.add(row[0])
    assert seen == set(known)


def test_word_and_character_dropout():
    sentences = [[(f"w{i}", "X")] * 40 for i in range(50)]
    sentences.append([("short", "X")])
    table = WordTable.of_sentences(sentences, least=1)
    plain, lossy = (
        tagged_batches(table, sentences, 51, unknown=rate, buckets=1)
        for rate in (0.0, 0.3)
    )
    tokens, characters = plain[0][0].values()
    lossy_tokens, lossy_characters = lossy[0][0].values()
    word = tokens != word_table.PAD
    lost = word & (lossy_tokens == word_table.UNKNOWN)
    blank = (lossy_characters != characters).any(-1)
    assert 0.25 < lost[word].mean() < 0.35
    assert 0.1 < blank[word].mean() < 0.2
    assert not (blank & ~lost).any()
    np.testing.assert_array_equal(lossy_tokens[~lost], tokens[~lost])
    np.testing.assert_array_equal(
        lossy_characters[blank],
        np.where(characters[blank] != word_table.PAD, word_table.UNKNOWN, 0),
    )
    np.testing.assert_array_equal(lossy[0][1], plain[0][1])
    lossy.on_epoch_end()
    assert (lossy[0][0]["token_ids"] != lossy_tokens).any()
    # Repeating an epoch gives the same batches.
    lossy.set_epoch(0)
    np.testing.assert_array_equal(lossy[0][0]["token_ids"], lossy_tokens)


def test_sentences_with_held_out_words_are_test_data():
    train, test = tagged_phrases(2000, seed=3)
    assert len(train) + len(test) == 2000
    assert 200 < len(test) < 1200
    nouns, verbs = (
        [
            {word for sentence in part for word, tag in sentence if tag == kind}
            for part in (train, test)
        ]
        for kind in ("NOUN", "VERB")
    )
    assert all(part[1] - part[0] for part in (nouns, verbs))
    seen = {word for sentence in train for word, _ in sentence}
    assert all(any(w not in seen for w, _ in sentence) for sentence in test)
    assert tagged_phrases(2000, seed=3) == (train, test)


def test_baselines_use_words_and_suffixes():
    learned = [
        [("walking", "VERB"), ("the", "DET"), ("Talking", "VERB")],
        [("run", "NOUN"), ("run", "VERB"), ("run", "NOUN"), ("Rome", "PROPN")],
        [("cat", "NOUN"), ("mat", "NOUN"), ("hat", "NOUN")],
    ]
    frequent, ending = SuffixTagger(learned), SuffixTagger(learned, longest=3)
    words = ["run", "the", "jumping", "Paris", "Rome"]
    assert frequent(words) == ["NOUN", "DET", "NOUN", "NOUN", "PROPN"]
    assert ending(words) == ["NOUN", "DET", "VERB", "NOUN", "PROPN"]
    # An initial capital is part of the suffix.
    assert ending(["Home"]) == ["PROPN"]
