"""Documents, sentence pairs, labeled sentences, questions about a context."""

import collections
import itertools
import re

import numpy as np
import pytest

from keras_attn import datasets
from keras_attn.datasets.phrase_grammar import disfluencies, facts, questions
from keras_attn.datasets.phrase_grammar.facts import Entity, Fact
from keras_attn.datasets.phrase_grammar.held_out import is_held_out
from keras_attn.datasets.phrase_grammar.inflection import english_plural
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    FEELINGS,
    NOUNS,
    VERBS,
)

SINGULARS = {english_plural(noun): noun for noun in NOUNS}
PASTS = {verb.past for verb in VERBS.values()} - {""}


def content(text):
    """The words without determiners, in the singular."""
    words = [SINGULARS.get(word, word) for word in text.split()]
    return [w for w in words if w not in ("the", "my", "our", "his", "her")]


def has_combination(text):
    return any(
        is_held_out(noun, adjective)
        for adjective, noun in itertools.pairwise(content(text))
        # Not "closed the door".
        if adjective in ADJECTIVES.keys() - PASTS and noun in NOUNS
    )


def shared_words(first, second):
    return len(set(content(first)) & set(content(second)) - {"."})


@pytest.mark.parametrize("split", ["train", "test"])
def test_documents(split):
    sizes, shared = collections.Counter(), []
    for document in datasets.make_documents(500, split=split):
        sizes[len(document)] += 1
        for sentence in document:
            assert re.fullmatch(r"[a-z]+( [a-z]+){3,10} \.", sentence)
        verbs = [PASTS.intersection(sentence.split()) for sentence in document]
        pairs = itertools.combinations(verbs, 2)
        assert any(first & second for first, second in pairs)
        assert split == "test" or not has_combination(" ".join(document))
        pairs = itertools.pairwise(document)
        shared.append(max(itertools.starmap(shared_words, pairs)))
    assert set(sizes) == {2, 3, 4} and min(sizes.values()) > 100
    assert np.mean(shared) > 2


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_sentence_pairs(split):
    count = 50 if split == "validation" else 200
    shared = {True: [], False: []}
    pairs = datasets.make_sentence_pairs(count, split=split)
    for first, second, is_next in pairs:
        shared[is_next].append(shared_words(first, second))
        assert split == "test" or not has_combination(f"{first} {second}")
    assert abs(len(shared[True]) - count / 2) < 0.2 * count
    assert np.mean(shared[True]) > np.mean(shared[False]) + 1


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_entailed_hypotheses_omit_words(split):
    """The others are not what remains of the premise."""
    omitted = collections.Counter()
    count = 100 if split == "validation" else 300
    pairs = datasets.make_entailment_pairs(count, split=split)
    for premise, hypothesis, entailed in pairs:
        words = iter(content(premise))
        assert entailed == all(word in words for word in content(hypothesis))
        assert split == "test" or not has_combination(f"{premise} {hypothesis}")
        if entailed:
            words = iter(premise.split())
            assert all(word in words for word in hypothesis.split())
            omitted[len(premise.split()) - len(hypothesis.split())] += 1
        else:
            is_more = set(content(hypothesis)) > set(content(premise))
            omitted["added" if is_more else "replaced"] += 1
    # Adjectives and locations.
    assert omitted.keys() >= {1, 2, 3, "added", "replaced"}
    found = omitted["added"] + omitted["replaced"]
    assert abs(found - count / 2) < 0.15 * count


def test_labels_are_told_by_the_words():
    labels = collections.Counter()
    for text, label, text_pair in datasets.make_labeled_sentences(1000):
        assert text_pair is None
        labels[label] += 1
        words = set(text.split())
        if "there" in words:
            expected = {"existence"}
        elif re.search(" as .* as | less .* than ", text):
            expected = {"comparison"}
        elif re.search("and|but|because", text) and label == "compound":
            expected = {"compound"}
        elif {"like", "likes"} & words:
            expected = {"preference"}
        elif {*FEELINGS} & words:
            expected = {"feeling"}
        elif re.search(r"\bto be\b|^(?!.*\bgoing\b).*\b(am|is|are|be)\b", text):
            expected = {"description", "location"}
        else:
            expected = {"action"}
        assert label in expected, text
    assert len(labels) == 8 and min(labels.values()) > 100


KINDS = "who", "what", "where", "which"


def statement(question):
    """A regular expression of sentences that answer it, with a group."""
    words = question.split()
    if words[0] == "which":
        noun, copula, predicate = words[1:]
        return f"((?:\\w+ )+{noun}) {copula} {predicate}"
    if words[0] == "where" and words[1] != "did":
        return f"{' '.join(words[2:])} {words[1]} (\\w+ .*)"
    if words[1] == "did":
        index = next(i for i, w in enumerate(words) if w in VERBS)
        verb = VERBS[words[index]]
        subject, rest = " ".join(words[2:index]), words[index + 1 :]
        answer = "(in .*)" if words[0] == "where" else "(.*?)(?: in .*)?"
        return " ".join([subject, verb.past, *rest, answer])
    if words[1] == "is":
        return f"(.*?) (?:is|are) {' '.join(words[2:])}"
    return f"(.*) {' '.join(words[1:])}(?: in .*)?"


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_answers_are_in_the_context(split):
    seen, shared = collections.Counter(), {True: [], False: []}
    count = 100 if split == "validation" else 500
    made = datasets.make_questions(count, seed=3, split=split)
    for question, context, answers in made:
        pattern = re.compile(statement(question))
        sentences = re.split(r" \.(?: |$)", context)[:-1]
        matches = [m for s in sentences if (m := pattern.fullmatch(s))]
        seen[question.split()[0], len(answers)] += 1
        if answers:
            ((answer, start),) = answers
            assert context[start : start + len(answer)] == answer
            assert [match[1] for match in matches] == [answer], question
        else:
            assert not matches, question
        assert split == "test" or not has_combination(f"{context} {question}")
        words = set(question.split()) - {"did", *KINDS}
        found = words & set(context.split())
        shared[bool(answers)].append(len(found) / len(words))
    assert set(seen) == set(itertools.product(KINDS, (0, 1)))
    # A third has no answer, but resembles the others.
    assert abs(len(shared[False]) - count / 3) < 0.08 * count
    assert all(0.7 < np.mean(found) < 0.95 for found in shared.values())
    made = datasets.make_questions(20, split=split, unanswerable_rate=0.0)
    assert all(question.answers for question in made)


def test_ambiguous_questions_are_not_asked():
    man, king, boy = (Entity("the", None, n) for n in ("man", "king", "boy"))
    red, black = (Entity("my", color, "box") for color in ("red", "black"))
    known = [
        Fact(man, "open", red, location=("in", Entity("the", None, "garden"))),
        Fact(king, "open", black),
        Fact(boy, "be", predicate="tired"),
    ]
    asked = {
        " ".join(question): " ".join(context[slice(*span)])
        for question, context, span in questions.answerable(known, range(3))
    }
    assert asked == {
        "who opened my red box": "the man",
        "what did the man open": "my red box",
        "where did the man open my red box": "in the garden",
        "who opened my black box": "the king",
        "what did the king open": "my black box",
        "which boy is tired": "the boy",
    }
    fact = Fact(boy, "open", red._replace(adjective=None))
    assert facts.answering_facts(known, fact, "subject") == [0, 1]
    vain = {" ".join(q.question) for q in questions.unanswerable(known, [1])}
    assert "where did the king open my black box" in vain
    assert "what did the boy open" in vain
    assert not vain & {*asked, "which king is sad"}
    known.append(Fact(king, "open", red))
    asked = {" ".join(q[0]) for q in questions.answerable(known, range(4))}
    assert not asked & {"who opened my red box", "what did the king open"}


def test_disfluent_questions_are_corrected():
    """What is after the cue replaces words before it."""
    kinds = collections.Counter()
    cues = "|".join(sorted(disfluencies.CUES, key=len, reverse=True))
    for disfluent, question, context in datasets.make_disfluent_questions(500):
        before, after = re.split(f" (?:{cues}) ", disfluent, maxsplit=1)
        words, correction = before.split(), after.split()
        spans = [
            (start, stop)
            for start, stop in itertools.combinations(range(len(words) + 1), 2)
            if [*words[:start], *correction, *words[stop:]] == question.split()
        ]
        assert spans, disfluent
        start, stop = spans[0]
        if after == question:
            kinds["restarted"] += 1
        else:
            kinds["late" if stop < len(words) else "at once"] += 1
            assert " ".join(words[start:stop]) in context
    assert len(kinds) == 3 and min(kinds.values()) > 15
