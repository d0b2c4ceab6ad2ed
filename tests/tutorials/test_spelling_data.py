"""Data of the spelling tutorial: words, noise, lists, letters, distances."""

import collections
import doctest
import gzip
import itertools
import random
import re

import corpora
import edit_distance
import english_forms
import misspellings
import numpy as np
import phrase_grammar
import pytest
import spelling_lexicon
import spelling_lines
import spelling_noise
import spelling_words
import word_stems
from edit_distance import Dictionary, kind_of_error
from letters import END, PAD, START, UNKNOWN, Letters
from spelling_batches import ROOM, spelling_batches
from spelling_suggestions import Suggestion, recall, replaced

pytestmark = pytest.mark.one_backend

LIST = """definately->definitely
beleive->believe
ther->there, their, the,
clas->class, disabled since it is a name in programs

alot->a lot
"""
WORDS = ["there", "their", "the", "in", "separate", "weather", "accommodate"]


@pytest.mark.parametrize(
    "module",
    [edit_distance, english_forms, spelling_lines, spelling_noise, word_stems],
)
def test_docstring_examples(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def by_search(first, second, limit=3):
    """Computes the distance by breadth-first search through all edits.

    No letter is edited twice: letters left of `done` are not changed.
    """
    alphabet = sorted(set(second))
    seen = states = {(first, 0)}
    for steps in range(limit + 1):
        if any(text == second for text, _ in states):
            return steps
        following = set()
        for text, done in states:
            for i in range(done, len(text) + 1):
                for c in alphabet:
                    following.add((text[:i] + c + text[i:], i + 1))
                    following.add((text[:i] + c + text[i + 1 :], i + 1))
                following.add((text[:i] + text[i + 1 :], i))
                swapped = text[i + 1 : i + 2] + text[i : i + 1]
                following.add((text[:i] + swapped + text[i + 2 :], i + 2))
        states = following - seen
        seen = seen | states
    return None


def test_distance_matches_a_search_through_all_edits():
    strings = [
        "".join(letters)
        for length in range(4)
        for letters in itertools.product("ab", repeat=length)
    ] + ["abc", "ca", "cab", "bca"]
    for first, second in itertools.product(strings, repeat=2):
        found = edit_distance.edit_distance(first, second)
        assert found == by_search(first, second), (first, second)


def test_answers_to_the_first_exercise():
    assert edit_distance.edit_distance("freind", "friend") == 1
    assert edit_distance.edit_distance("adress", "address") == 1
    assert edit_distance.edit_distance("ca", "abc") == 3


@pytest.mark.parametrize(
    "wrong, kind",
    [
        ("letter", "none"),
        ("ltter", "left out"),
        ("lette", "left out"),
        ("leter", "single"),
        ("lettear", "added"),
        ("aletter", "added"),
        ("lletter", "doubled"),
        ("letterr", "doubled"),
        ("lettar", "changed"),
        ("eltter", "swapped"),
        ("lettre", "swapped"),
        ("leetre", "several"),
    ],
)
def test_error_kinds(wrong, kind):
    assert kind_of_error(wrong, "letter") == kind


def test_dictionary_matches_a_linear_search():
    draw = random.Random(0)
    words = {
        "".join(draw.choices("abcde", k=draw.randint(2, 6))) for _ in range(300)
    }
    dictionary = Dictionary(words)
    far = 0
    for _ in range(300):
        wrong = "".join(draw.choices("abcdeé", k=draw.randint(1, 8)))
        distance, nearest = min(
            (edit_distance.edit_distance(wrong, word), word) for word in words
        )
        assert dictionary(wrong) == (nearest if distance <= 2 else wrong)
        far += distance > 2
    assert 0 < far < 300


def test_verb_forms():
    forms = {
        verb: (
            english_forms.with_s(verb),
            english_forms.with_ed(verb),
            english_forms.with_ing(verb),
        )
        for verb in "permit offer apply destroy fix rely travel quit".split()
    }
    assert forms == {
        "permit": ("permits", "permitted", "permitting"),
        "offer": ("offers", "offered", "offering"),
        "apply": ("applies", "applied", "applying"),
        "destroy": ("destroys", "destroyed", "destroying"),
        "fix": ("fixes", "fixed", "fixing"),
        "rely": ("relies", "relied", "relying"),
        "travel": ("travels", "traveled", "traveling"),
        "quit": ("quits", "quitted", "quitting"),
    }


def test_words_are_valid():
    words = list(itertools.chain(*spelling_words.families()))
    assert len(words) == len(set(words)) > 4000
    assert all(re.fullmatch("[a-z]+", word) for word in words)
    # No rule may produce these.
    left = re.compile(r"(.)\1\1|ii|[^aeo]yed$|[^aeiou]ys$|[^aeiouw]y(er|est)$")
    assert [word for word in words if left.search(word)] == []
    # No table has duplicates.
    for name in ("VERBS", "NOUNS", "MASS_NOUNS", "ADJECTIVES", "GRADED"):
        table = getattr(spelling_lexicon, name).split()
        assert len(table) == len(set(table)), name


def test_content_words_of_the_grammar_are_included():
    words = set(itertools.chain(*spelling_words.families()))
    sentences = phrase_grammar.generate_pairs(3000, seed=1)
    found = collections.Counter(
        word for english, _ in sentences for word in english.split()
    )
    assert {word for word in found if word not in words} == set()


def test_related_words_are_in_one_split():
    train, held_out = spelling_words.split_words()
    assert 0.05 < len(held_out) / len(train) < 0.15
    assert not set(train) & set(held_out)
    assert {word_stems.stem(w) for w in train}.isdisjoint(
        word_stems.stem(w) for w in held_out
    )
    (family,) = (f for f in spelling_words.families() if "write" in f)
    assert {"write", "wrote", "written", "writing", "writer"} <= set(family)
    assert spelling_words.split_words() == (train, held_out)


def test_new_words():
    trained = ["calculations", "run", "happy", "library"]
    words = ["calculator", "running", "unhappiness", "libraries", "window"]
    assert word_stems.unseen(words, trained) == [4]


def test_misspellings_are_not_words():
    draw, right = random.Random(0), frozenset(WORDS)
    for word in WORDS:
        if len(word) < 3:
            with pytest.raises(ValueError, match=r"three letters.*'in'"):
                spelling_noise.misspell(word, draw, right)
            continue
        for _ in range(500):
            wrong = spelling_noise.misspell(word, draw, right)
            assert wrong and wrong not in right
            assert len(wrong) <= len(word) + ROOM
            assert edit_distance.edit_distance(wrong, word) <= 6


def test_noise_statistics():
    assert abs(sum(spelling_noise.KINDS.values()) - 1) < 1e-9
    draw = random.Random(1)
    made = [spelling_noise.misspell("accommodate", draw) for _ in range(4000)]
    first = np.mean([wrong[0] != "a" for wrong in made])
    assert 0 < first < 0.05
    kinds = collections.Counter(
        kind_of_error(wrong, "accommodate") for wrong in made
    )
    assert set(kinds) == {
        *("left out", "single", "added", "doubled"),
        *("changed", "swapped", "several"),
    }
    assert 0.15 < kinds["several"] / 4000 < 0.3
    again = random.Random(1)
    assert made[:9] == [
        spelling_noise.misspell("accommodate", again) for _ in range(9)
    ]


def test_inapplicable_errors_do_not_change_words():
    draw = random.Random(2)
    for name, error in spelling_noise._ERRORS.items():
        found = {error("weather", 1, draw) for _ in range(50)}
        assert (found == {None}) == (name == "single"), name
    assert spelling_noise._single("letter", 1, draw) == "leter"
    assert spelling_noise._left_out("ab", 0, draw) is None


def test_keyboard_neighbors_are_mutual():
    near = spelling_noise.neighbours()
    assert len(near) == 26
    for letter, others in near.items():
        assert all(letter in near[other] for other in others)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_read_list(name, tmp_path):
    path, content = tmp_path / name, LIST.encode("utf-8")
    zipped = name.endswith(".gz")
    path.write_bytes(gzip.compress(content) if zipped else content)
    found = misspellings.read_misspellings(path)
    assert found.several == 1
    assert found.pairs == [
        ("definately", "definitely"),
        ("beleive", "believe"),
        ("clas", "class"),
        ("alot", "a lot"),
    ]


def test_columns_and_several_files(tmp_path):
    first, second = tmp_path / "a.tsv", tmp_path / "b.txt"
    first.write_text("teh\tthe\t7\nteh\tthe\nwas\twas\n", encoding="utf-8")
    second.write_text("thier->their\n", encoding="utf-8")
    found = misspellings.read_misspellings(f"{first}, {second}")
    assert found == ([("teh", "the"), ("thier", "their")], 0)


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "there is no misspelling with one correction"),
        ("ther->there, their,\n", "there is no misspelling with one"),
        ("a->b\nteh the\n", "Line 2 of .* is no misspelling.*'teh the'"),
        ("teh->\n", "Line 1 of .* is no misspelling"),
        ("->the\n", "Line 1 of .* is no misspelling"),
    ],
)
def test_invalid_lists_raise(content, said, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(corpora.CorpusError, match=said):
        misspellings.read_misspellings(path)


def test_each_correct_word_is_in_one_split():
    pairs = [(f"w{i}{j}", f"word{i}") for i in range(400) for j in range(2)]
    parts = misspellings.split_by_right(pairs)
    rights = [{right for _, right in part} for part in parts]
    assert sum(map(len, rights)) == 400 and sum(map(len, parts)) == 800
    assert 8 < len(rights[1]) < 40 and 8 < len(rights[2]) < 40
    # sha256("definitely") mod 20
    assert misspellings.split_by_right([("x", "definitely")])[0]


def test_letters_have_ids():
    letters = Letters.of_words(["abc", "cab-"])
    assert letters.characters == "-abc" and letters.size == 8
    assert letters.encode("cd") == [7, UNKNOWN, END]
    rows = letters.rows(["ab", "cab"], 4)
    assert rows.tolist() == [[5, 6, END, PAD], [7, 5, 6, END]]
    assert [letters.decode(row) for row in rows] == ["ab", "cab"]
    assert letters.decode([START, 5, UNKNOWN, 6, END, 7]) == "ab"
    with pytest.raises(ValueError, match=r"less than 4 characters.*'cab-'"):
        letters.rows(["cab-"], 4)


def test_letters_roundtrip(tmp_path):
    letters = Letters.of_words(["naïve", "don't"])
    letters.save(tmp_path / "letters.json")
    assert Letters.load(tmp_path / "letters.json").encode(
        "naïve"
    ) == letters.encode("naïve")


def batches_of(pairs=(), words=(), **options):
    letters = Letters.of_words(
        [*words, *itertools.chain(*pairs), "abcdefghijklmnopqrstuvwxyz"]
    )
    return letters, spelling_batches(letters, pairs, words, **options)


def read(letters, batches):
    found = []
    for i in range(len(batches)):
        (source, target), labels = batches[i]
        assert source.shape == (len(labels), labels.shape[1] + ROOM)
        assert labels.shape[1] in batches.lengths
        assert (target[:, 0] == START).all()
        behind = labels[:, :-1]
        there = labels[:, 1:] != PAD
        np.testing.assert_array_equal(target[:, 1:][there], behind[there])
        assert not target[:, 1:][~there].any()
        found += [
            (letters.decode(s), letters.decode(y))
            for s, y in zip(source, labels, strict=True)
        ]
    return found


def test_epoch_contains_every_pair_and_word():
    pairs = [("untill", "until"), ("teh", "the"), ("alott", "a lot")]
    letters, batches = batches_of(pairs, WORDS * 3, batch_size=4, buckets=2)
    epochs = []
    for _ in range(2):
        found = read(letters, batches)
        times = collections.Counter(right for _, right in found)
        assert set(times) == {*(right for _, right in pairs), *WORDS}
        assert all(times[word] >= 3 for word in WORDS)
        assert set(pairs) <= set(found)
        assert ("in", "in") in found
        epochs.append(found)
        batches.on_epoch_end()
    assert sorted(epochs[0]) != sorted(epochs[1])  # different noise
    batches.set_epoch(0)
    assert read(letters, batches) == epochs[0]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_fraction_of_words_is_unchanged(share):
    letters, batches = batches_of(words=["weather"] * 900, unchanged=share)
    found = read(letters, batches)
    same = np.mean([wrong == right for wrong, right in found])
    assert abs(same - share) < 0.06


def test_batches_without_data_raise():
    with pytest.raises(ValueError, match="`pairs` or `words`"):
        batches_of()


def test_recall_and_replacement():
    found = [
        [Suggestion("the", 0.7), Suggestion("then", 0.2)],
        [Suggestion("form", 0.4), Suggestion("from", 0.3)],
    ]
    rights = ["the", "from"]
    assert [recall(found, rights, n) for n in (1, 2)] == [0.5, 1.0]
    assert replaced("teh", found[0], 0.7) == "the"
    assert replaced("fro", found[1], 0.5) == "fro"
    assert replaced("zzz", [], 0.0) == "zzz"


def test_line_is_corrected(monkeypatch):
    answers = {
        "teh": [Suggestion("the", 0.9), Suggestion("ten", 0.1)],
        "maan": [Suggestion("man", 0.4), Suggestion("main", 0.3)],
        "is": [Suggestion("is", 1.0)],
    }
    asked = []

    def suggest(model, letters, words, count):
        asked.extend(words)
        return [answers[word] for word in words]

    monkeypatch.setattr(spelling_lines, "suggest", suggest)
    letters = Letters.of_words(["tehmanis"])
    lines = ["Teh  maan, is TEH 'naïve' X9?", "", "teh"]
    said = list(spelling_lines.correct(None, letters, lines, 2, 0.5))
    assert said == [
        "The  maan, is THE 'naïve' X9?",
        "  teh: the 0.90, ten 0.10",
        "  maan: man 0.40, main 0.30",
        "",
        "the",
        "  teh: the 0.90, ten 0.10",
    ]
    assert sorted(asked) == ["is", "maan", "teh"]


def test_folder_without_a_model_raises(tmp_path):
    with pytest.raises(ValueError, match=r"MODEL must be .*without model\."):
        spelling_lines.run(tmp_path)
