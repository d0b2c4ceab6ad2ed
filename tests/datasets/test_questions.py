"""Questions, against the text of their context."""

import collections
import itertools
import re

import pytest

from keras_attn.datasets import make_disfluent_questions, make_questions
from keras_attn.datasets.phrase_grammar.disfluencies import CUES
from keras_attn.datasets.phrase_grammar.facts import (
    Entity,
    Fact,
    answering_facts,
)
from keras_attn.datasets.phrase_grammar.held_out import is_held_out
from keras_attn.datasets.phrase_grammar.lexicon import (
    ADJECTIVES,
    NOUNS,
    VERBS,
)
from keras_attn.datasets.phrase_grammar.questions import (
    answerable,
    unanswerable,
)

pytestmark = pytest.mark.one_backend


@pytest.fixture(scope="module")
def questions():
    return {
        split: make_questions(count, seed=3, split=split)
        for split, count in (
            ("train", 2000),
            ("validation", 100),
            ("test", 500),
        )
    }


def statement(question):
    """Returns a regular expression of the sentences that answer a question.

    The answer is the group.
    """
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
        rest = " ".join([subject, verb.past, *rest])
        return rest + (
            " (in .*)" if words[0] == "where" else " (.*?)(?: in .*)?"
        )
    if words[1] == "is":
        return f"(.*?) (?:is|are) {' '.join(words[2:])}"
    return f"(.*) {' '.join(words[1:])}(?: in .*)?"


def test_answers_are_in_the_context(questions):
    seen = collections.Counter()
    for question, context, answers in itertools.chain(*questions.values()):
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
    kinds = ("who", "what", "where", "which")
    assert set(seen) == {(kind, n) for kind in kinds for n in (0, 1)}


def test_unanswerable_questions_resemble_the_others(questions):
    known = {"did", "where", "what", "who", "which"}
    for has_answer in (True, False):
        fractions = []
        for question, context, answers in questions["train"]:
            if bool(answers) == has_answer:
                words = set(question.split()) - known
                shared = words & set(context.split())
                fractions.append(len(shared) / len(words))
        assert 0.7 < sum(fractions) / len(fractions) < 0.95
    for part in questions.values():
        rate = sum(not question.answers for question in part) / len(part)
        assert abs(rate - 1 / 3) < 0.15 if len(part) < 200 else 0.05
    assert all(q.answers for q in make_questions(200, unanswerable_rate=0.0))
    with pytest.raises(ValueError, match="`unanswerable_rate` must "):
        make_questions(1, unanswerable_rate=1.0)


def test_combinations_are_held_out(questions):
    for split, part in questions.items():
        for question, context, _ in part:
            words = f"{context} {question}".split()
            pairs = itertools.pairwise(words)
            found = any(
                is_held_out(noun, adjective)
                for adjective, noun in pairs
                if adjective in ADJECTIVES and noun in NOUNS
            )
            assert split == "test" or not found


def test_ambiguous_questions_are_not_asked():
    man, king, boy = (Entity("the", None, n) for n in ("man", "king", "boy"))
    red, black = (Entity("my", color, "box") for color in ("red", "black"))
    location = "in", Entity("the", None, "garden")
    facts = [
        Fact(man, "open", red, location=location),
        Fact(king, "open", black),
        Fact(boy, "be", predicate="tired"),
    ]
    asked = {
        " ".join(question): " ".join(context[slice(*span)])
        for question, context, span in answerable(facts, range(3))
    }
    assert asked == {
        "who opened my red box": "the man",
        "what did the man open": "my red box",
        "where did the man open my red box": "in the garden",
        "who opened my black box": "the king",
        "what did the king open": "my black box",
        "which boy is tired": "the boy",
    }
    box = red._replace(adjective=None)
    assert answering_facts(facts, Fact(boy, "open", box), "subject") == [0, 1]
    vain = {" ".join(q.question) for q in unanswerable(facts, [1])}
    assert {
        "where did the king open my black box",
        "what did the boy open",
    } <= vain
    assert not vain & {*asked, "which king is sad"}
    facts.append(Fact(king, "open", red))
    asked = [" ".join(q.question) for q in answerable(facts, range(4))]
    assert "who opened my red box" not in asked
    assert "what did the king open" not in asked


def test_disfluent_questions_are_corrected():
    """What is after the cue replaces words before it."""
    kinds = collections.Counter()
    cues = "|".join(sorted(CUES, key=len, reverse=True))
    for disfluent, question, context in make_disfluent_questions(1000):
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
    assert len(kinds) == 3 and min(kinds.values()) > 30
