"""Tags, against the translations and the word order."""

import pytest

from keras_attn.datasets import make_tagged_sentences, make_translation_pairs
from keras_attn.datasets.phrase_grammar import part_of_speech
from keras_attn.datasets.phrase_grammar.lexicon import VERBS

pytestmark = pytest.mark.one_backend

UPOS = "ADJ ADP ADV AUX CCONJ DET NOUN NUM PART PRON SCONJ VERB".split()
WRITTEN = """
the/DET old/ADJ man/NOUN closed/VERB the/DET open/ADJ door/NOUN
she/PRON has/VERB to/PART clean/VERB the/DET box/NOUN
we/PRON walked/VERB to/ADP the/DET clean/ADJ hotel/NOUN next/ADV to/ADP it/DET
the/DET bus/NOUN is/AUX as/ADV old/ADJ as/ADP my/PRON cars/NOUN
both/DET doors/NOUN are/AUX not/PART closed/ADJ next/ADJ week/NOUN
""".strip().splitlines()


@pytest.mark.parametrize("line", WRITTEN)
def test_tags_written_by_hand(line):
    words, tags = zip(*(pair.split("/") for pair in line.split()), strict=True)
    words = ["the" if word == "it" else word for word in words]
    assert part_of_speech.tag(words) == list(tags)


@pytest.mark.parametrize("tags", ["upos", "roles"])
def test_test_sentences_have_unknown_words(tags):
    train, validation, test = (
        make_tagged_sentences(count, split=split, tags=tags)
        for split, count in (
            ("train", 3000),
            ("validation", 100),
            ("test", 500),
        )
    )
    seen = {word for sentence in train for word in sentence.words}
    assert all(not seen.issuperset(sentence.words) for sentence in test)
    assert seen.issuperset(w for sentence in validation for w in sentence.words)
    unknown = {w for sentence in test for w in sentence.words} - seen
    assert len(unknown) > 20
    for words, found in (*train, *test):
        assert len(words) == len(found) and isinstance(words, tuple)


def test_every_tag_occurs():
    sentences = make_tagged_sentences(2000)
    assert sorted({t for _, tags in sentences for t in tags}) == UPOS


@pytest.mark.parametrize(
    ("word", "adjective", "verb"),
    [("open", "abiert", "abr"), ("closed", "cerrad", "cerr")],
)
def test_the_translation_tells_the_tag(word, adjective, verb):
    seen = {"ADJ": 0, "VERB": 0}
    for english, spanish in make_translation_pairs(6000, seed=5):
        words = english.split()
        forms = [
            form.startswith(adjective)
            for form in spanish.split()
            if form.startswith((verb, adjective))
        ]
        # In other sentences, something else is opened or closed.
        if words.count(word) == len(forms) == 1:
            expected = "ADJ" if forms[0] else "VERB"
            tag = part_of_speech.tag(words)[words.index(word)]
            assert tag == expected, english
            seen[expected] += 1
    assert min(seen.values()) > 20


def test_roles_are_around_the_verb():
    pasts = {verb.past: verb.particle.split() for verb in VERBS.values()}
    prepositions = {"in", "on", "under", "near"}
    for words, tags in make_tagged_sentences(2000, tags="roles"):
        spans = dict.fromkeys(tag[2:] for tag in tags if tag != "O")
        for role in spans:
            first = tags.index(f"B-{role}")
            rest = tags[first + 1 :]
            inside = len(rest) - len([t for t in rest if t != f"I-{role}"])
            assert rest[:inside] == (f"I-{role}",) * inside
            assert tags.count(f"B-{role}") == 1
            spans[role] = words[first : first + 1 + inside]
        outside = [w for w, tag in zip(words, tags, strict=True) if tag == "O"]
        assert words[: len(spans["subject"])] == spans["subject"]
        if outside[0] in ("is", "are"):
            assert "object" not in spans
            assert ("location" in spans) == (len(outside) == 1)
        else:
            assert outside[1:] == pasts[outside[0]]
            assert "object" in spans
        if "location" in spans:
            assert spans["location"][0] in prepositions
            assert words[-len(spans["location"]) :] == spans["location"]
    with pytest.raises(ValueError, match="`tags` must be one of 'upos', 'rol"):
        make_tagged_sentences(1, tags="bio")
