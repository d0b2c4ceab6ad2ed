"""Data of the question answering tutorial: passages, dialogues, scores."""

import doctest
import gzip
import json
import random

import answer_scores
import corpora
import numpy as np
import phrase_facts
import phrase_passages
import phrase_questions
import phrase_slips
import pytest
import questions
import repairs
import restaurant_spans
from answer_baselines import FrequentPlace, KnownAnswer, LikeliestSentence
from copy_table import END, PAD, START, UNKNOWN, CopyTable
from phrase_clauses import VERBS
from phrase_facts import Fact, Thing
from question_table import (
    ASKED,
    LONGEST_WORD,
    READ,
    SEPARATOR,
    SHARED,
    QuestionTable,
)
from questions import Question

pytestmark = pytest.mark.one_backend

MAN, KING, BOY = (Thing("the", None, noun) for noun in ("man", "king", "boy"))
RED, BLACK = (Thing("my", which, "box") for which in ("red", "black"))
GARDEN = "in", Thing("the", None, "garden")
FACTS = [
    Fact(MAN, "open", RED, place=GARDEN),
    Fact(KING, "open", BLACK),
    Fact(BOY, "be", quality="tired"),
]
TURNS = [
    {
        "userInput": {"text": "At 7:30pm, for two"},
        "context": {"requestedSlots": ["time", "people"]},
        "labels": [
            {"slot": "time", "valueSpan": {"startIndex": 2, "endIndex": 9}},
            {"slot": "people", "valueSpan": {"startIndex": 15, "endIndex": 18}},
        ],
    },
    {
        "userInput": {"text": "Ann"},
        "labels": [{"slot": "first_name", "valueSpan": {"endIndex": 3}}],
    },
    {"userInput": {"text": "Hello?"}},
]
PAIRS = {
    "1": {"disfluent": "Who did no where is It?", "original": "Where is It?"},
    "2": {"disfluent": "#", "original": ""},
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="a.json"):
        text = content if isinstance(content, str) else json.dumps(content)
        zipped = name.endswith(".gz")
        path = tmp_path / name
        path.write_bytes(
            gzip.compress(text.encode()) if zipped else text.encode()
        )
        return path

    return write


@pytest.fixture(scope="module")
def splits():
    return phrase_questions.question_splits(1500, 200, 200, seed=3)


def test_docstring_examples():
    for module in (
        questions,
        phrase_facts,
        phrase_passages,
        phrase_questions,
        phrase_slips,
        answer_scores,
        repairs,
    ):
        assert doctest.testmod(module).failed == 0, module.__name__


def test_passage_and_its_questions():
    words, spans = phrase_passages.write(FACTS)
    assert " ".join(words) == (
        "the man opened my red box in the garden . "
        "the king opened my black box . the boy is tired ."
    )
    assert spans[0] == {"subject": (0, 1), "object": (3, 5), "place": (6, 8)}
    asked = {
        " ".join(question.asked): question.answer
        for _, _, question in phrase_questions.answered(FACTS)
    }
    assert asked == {
        "who opened my red box": "the man",
        "what did the man open": "my red box",
        "where did the man open my red box": "in the garden",
        "who opened my black box": "the king",
        "what did the king open": "my black box",
        "which boy is tired": "the boy",
    }


def test_ambiguous_questions_are_not_asked():
    facts = [*FACTS, Fact(KING, "open", RED)]
    asked = [" ".join(q.asked) for _, _, q in phrase_questions.answered(facts)]
    assert "who opened my red box" not in asked
    assert "what did the king open" not in asked
    # *A box* is ambiguous.
    box = RED._replace(adjective=None)
    assert phrase_facts.answers(FACTS, Fact(BOY, "open", box), "subject") == [
        *(0, 1)
    ]


def test_unanswerable_questions():
    asked = {
        " ".join(question.asked) for question in phrase_questions.vain(FACTS, 1)
    }
    assert "where did the king open my black box" in asked
    assert "what did the boy open" in asked
    assert "which king is sad" not in asked
    assert "who opened my black box" not in asked


def test_invalid_question_raises():
    with pytest.raises(ValueError, match="`role` must be one of"):
        phrase_facts.ask(FACTS[2], "object")


def read_back(words):
    """Splits a passage into sentences by its words alone."""
    text = " ".join(words)
    return [sentence.strip() for sentence in text.split(" .") if sentence]


def test_answers_are_correct(splits):
    """The question with its answer filled in must be in the passage."""
    seen = set()
    for question in [q for part in splits for q in part]:
        sentences = read_back(question.passage)
        kind, *rest = question.asked
        seen.add((kind, question.span is None))
        if question.span is None:
            continue
        if kind == "who" and rest[0] not in ("did", "is"):
            said = f"{question.answer} {' '.join(rest)}"
            assert any(s.startswith(said) for s in sentences), question
        elif rest[0] == "did":
            holds = [s for s in sentences if question.answer in s]
            verb = next(w for w in rest if w in VERBS)
            assert any(VERBS[verb].past in s for s in holds), question
        elif kind == "where":
            said = f"{' '.join(rest[1:])} {rest[0]} {question.answer}"
            assert said in sentences, question
        elif kind == "which":
            assert f"{question.answer} {' '.join(rest[1:])}" in sentences
    assert seen == {
        (kind, none)
        for kind in ("who", "what", "where", "which")
        for none in (False, True)
    }


def test_unanswerable_questions_have_no_answer():
    """Brute force: no sentence of the passage answers the question."""
    draw = random.Random(5)
    vain = 0
    for _ in range(300):
        facts = phrase_passages.passage(draw)
        words, spans = phrase_passages.write(facts)
        everything = {
            " ".join(phrase_facts.ask(fact, role))
            for fact, found in zip(facts, spans, strict=True)
            for role in phrase_facts.roles(fact)
            if role in found
        }
        for number in range(len(facts)):
            for question in phrase_questions.vain(facts, number):
                assert question.passage == words
                assert " ".join(question.asked) not in everything
                vain += 1
    assert vain > 1000


def test_unanswerable_questions_resemble_answerable_ones(splits):
    """Nearly all of their words occur in the passage, as in the others."""
    known = {"did", "where", "what", "who", "which"}
    for none in (True, False):
        part = [q for q in splits.train if (q.span is None) == none]
        shares = [
            np.mean([w in q.passage for w in q.asked if w not in known])
            for q in part
        ]
        assert 0.7 < np.mean(shares) < 0.95
    share = np.mean([q.span is None for q in splits.train])
    assert 0.2 < share < 0.3


def test_splits_are_disjoint(splits):
    assert list(map(len, splits)) == [1500, 200, 200]
    train, validation, test = (
        {tuple(q.passage) for q in part} for part in splits
    )
    assert not train & validation and not (train | validation) & test
    # Only test passages have held-out combinations.
    names = phrase_slips.names
    for part, expected in zip(splits, (False, False, True), strict=True):
        for question in part:
            found = any(
                phrase_questions.is_new(Fact(thing, "be", quality=None))
                for thing in map(thing_of, _names_in(question, names))
                if thing
            )
            assert expected or not found
    again = phrase_questions.question_splits(1500, 200, 200, seed=3)
    assert again == splits
    with pytest.raises(ValueError, match="must not be negative"):
        phrase_questions.question_splits(-1)


def _names_in(question, names):
    passage = question.passage
    return [passage[first : last + 1] for first, last in names(passage)]


def thing_of(words):
    """Returns the noun of a singular name, or None."""
    determiner, *adjectives, noun = words
    if noun not in phrase_passages.NOUNS or len(adjectives) > 1:
        return None
    return Thing(determiner, adjectives[0] if adjectives else None, noun)


def test_two_names_are_swapped():
    draw = random.Random(2)
    for _ in range(50):
        before, after = phrase_questions.exchanged_names(draw)
        assert before.asked == after.asked
        assert sorted(before.passage) == sorted(after.passage)
        assert before.answer != after.answer
        # The same words follow each name.
        (_, one), (_, other) = before.span, after.span
        behind = " ".join(before.asked[1:])
        for question, last in ((before, one), (after, other)):
            rest = " ".join(question.passage[last + 1 :])
            assert rest.startswith(behind)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_read_dialogues(name, write):
    found = restaurant_spans.read_turns(write(TURNS, name))
    assert len(found) == 15
    people, time, date, first, last = found[:5]
    assert people.asked == ["people", "requested", "people", "time"]
    assert time.passage == [*("At", "7", ":", "30", "pm", ","), "for", "two"]
    # A span that starts with a space, and one before a comma.
    assert time.answer == "7 : 30 pm" and people.answer == "two"
    assert date.span is first.span is last.span is None
    assert found[8] == Question(["first", "name"], ["Ann"], (0, 0))
    assert found[10].passage == ["Hello", "?"]
    train, held = restaurant_spans.split_by_passage(found, parts=2)
    assert len(train) + len(held) == 15
    assert not {q.passage[0] for q in train} & {q.passage[0] for q in held}


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "is not JSON"),
        ({}, "must hold a list of turns. Received: dict"),
        ([], "there is no turn with words"),
        ([{"text": "a"}], "Turn 1 of .* KeyError"),
        ([*TURNS, 3], "Turn 4 of .* cannot be read"),
        (
            [
                {
                    "userInput": {"text": "a"},
                    "labels": [{"slot": "time", "valueSpan": {"endIndex": 9}}],
                }
            ],
            "no words from 0 to 9 of 'a'",
        ),
        (
            [
                {
                    "userInput": {"text": "a"},
                    "context": {"requestedSlots": ["colour"]},
                }
            ],
            "no slot is called 'colour'",
        ),
    ],
)
def test_invalid_dialogues_raise(content, said, write):
    with pytest.raises(corpora.CorpusError, match=said):
        restaurant_spans.read_turns(write(content))


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_read_repairs(name, write):
    assert repairs.read_repairs(write(PAIRS, name)) == [
        ("who did no where is it ?".split(), "where is it ?".split())
    ]


@pytest.mark.parametrize(
    "content, said",
    [
        ("[", "is not JSON"),
        ([], "must hold an object of pairs. Received: list"),
        ({}, "there is no pair of texts"),
        ({"7": {"original": "a"}}, "'7' of .* must have a text as `disfl"),
        ({"7": "a"}, "'7' of .* must have a text"),
    ],
)
def test_invalid_repairs_raise(content, said, write):
    with pytest.raises(corpora.CorpusError, match=said):
        repairs.read_repairs(write(content))


def test_rule_baseline_and_exact_match():
    for source, expected in (
        ("what no wait who did he see", "who did he see"),
        ("what did he no sorry she see", "what did he no sorry she see"),
        ("who did he see", "who did he see"),
    ):
        found = repairs.behind_the_cue(source.split())
        assert " ".join(found) == expected
    with pytest.raises(ValueError, match="as many texts as `right`"):
        repairs.exact_match([], [])


def test_slip_contains_the_intended_words(splits):
    draw = random.Random(0)
    kept, cues = 0, {cue.split()[0] for cue in phrase_slips.CUES}
    for question in splits.train[:300]:
        said = phrase_slips.slip(draw, question)
        assert said != question.asked and cues & set(said)
        # Every intended word is in the slip, in order.
        for word in question.asked:
            assert said.count(word) >= 1
        rest = iter(said)
        kept += all(word in rest for word in question.asked)
    assert 0.7 < kept / 300 < 1  # The others are corrected late.


def test_rows_and_labels():
    first = Question(["Who"], ["the", "Cat", "slept"], (0, 1))
    second = Question(["who", "sang"], ["a"], None)
    table = QuestionTable.of_questions([first, second], characters=True)
    assert table.words == ["a", "cat", "sang", "slept", "the", "who"]
    assert table.vocabulary_size == 9
    inputs = table.encode([first, second], 7)
    assert inputs["token_ids"].tolist() == [
        [8, SEPARATOR, 7, 4, 6, 0, 0],
        [8, 5, SEPARATOR, 3, 0, 0, 0],
    ]
    assert inputs["answerable"].tolist() == [
        [False, False, True, True, True, False, False],
        [False, False, False, True, False, False, False],
    ]
    assert not inputs["segment_ids"][:, 0].any()
    again = Question(["sang", "Who"], ["who", "or", "Sang"], None)
    assert table.encode([again], 7)["segment_ids"].tolist() == [
        [ASKED, ASKED, ASKED, SHARED, READ, SHARED, ASKED]
    ]
    assert table.labels([first, second]).tolist() == [[3, 4], [0, 0]]
    spelt = inputs["character_ids"]
    assert spelt.shape == (2, 7, LONGEST_WORD)
    assert not spelt[0, 1].any() and not spelt[0, 5:].any()
    assert [table.characters[i - 2] for i in spelt[0, 3] if i] == [*"Cat"]
    with pytest.raises(ValueError, match="`length` must be at least 5"):
        table.encode([first], 4)
    unknown = table.encode([Question(["dog"], ["x" * 99], None)])
    assert unknown["token_ids"].tolist() == [[1, SEPARATOR, 1]]


def test_question_table_roundtrip(tmp_path):
    question = Question(["who"], ["the", "cat"], (0, 1))
    for characters in (False, True):
        table = QuestionTable.of_questions([question], characters=characters)
        table.save(tmp_path / "words.json")
        loaded = QuestionTable.load(tmp_path / "words.json")
        assert vars(loaded)["words"] == table.words
        assert (
            loaded.character_vocabulary_size == table.character_vocabulary_size
        )
        expected = table.encode([question])
        for name, array in loaded.encode([question]).items():
            np.testing.assert_array_equal(array, expected[name])


def test_answer_scores():
    passage = [*"abcdef"]
    right = [(0, 1), (2, 4), None, None, (5, 5)]
    asked = [Question(["q"], passage, span) for span in right]
    found = [(0, 1), (3, 5), None, (0, 0), None]
    result = answer_scores.scores(found, asked)
    assert result == pytest.approx(
        {
            "exact match": 2 / 5,
            "word F1": (1 + 2 / 3 + 1) / 5,
            "span precision": 1 / 3,
            "span recall": 1 / 3,
            "span F1": 1 / 3,
            "none precision": 1 / 2,
            "none recall": 1 / 2,
        }
    )
    perfect = answer_scores.scores(right, asked)
    assert set(perfect.values()) == {1.0}
    for one in right[:2]:
        for other in ((0, 0), (1, 3), (2, 4)):
            a, b = (set(range(x[0], x[1] + 1)) for x in (one, other))
            expected = 2 * len(a & b) / (len(a) + len(b))
            assert answer_scores.overlap(one, other) == expected
    with pytest.raises(ValueError, match="an answer for each"):
        answer_scores.scores([], [])


def test_baselines():
    passage = "the man opened my box . the king saw the boy".split()
    train = [
        Question(["who"], passage, (0, 1)),
        Question(["who"], passage[6:], (0, 1)),
        Question(["what"], passage, (9, 10)),
    ]
    place, known = FrequentPlace(train), KnownAnswer(train)
    sentence = LikeliestSentence()
    assert place(train[0]) == (0, 1) and place(train[2]) == (9, 10)
    assert place(Question(["what"], ["a"], None)) is None
    assert place(Question(["why"], ["a"], None)) is None
    assert known(Question(["who"], ["see", "The", "king"], None)) == (1, 2)
    assert known(Question(["what"], ["the", "king"], None)) is None
    asked = Question("who saw the boy".split(), passage, (6, 7))
    assert sentence(asked) == (6, 7)
    assert sentence(Question(["a"], ["a"], None)) is None


def test_rare_words_are_copied():
    pairs = [
        (f"who did no who saw {name}".split(), f"who saw {name}".split())
        for name in ("ann", "bob")
    ]
    table = CopyTable.of_pairs(pairs, words=2, slots=3)
    assert table.words == ["saw", "who"]
    assert table.vocabulary_size == 4 + 3 + 2
    source = "who saw zoe no ann".split()
    numbers = table.numbers(source)
    assert numbers == {"zoe": 4, "no": 5, "ann": 6}
    ids = table.encode("who saw ann eve".split(), numbers)
    assert ids == [8, 7, 6, UNKNOWN]
    assert table.decode([*ids, END, 4], numbers) == ["who", "saw", "ann"]
    (left, right), labels = table.batch([(source, ["ann"])], 7)
    assert left.tolist() == [[8, 7, 4, 5, 6, END, PAD]]
    assert right[0, :3].tolist() == [START, 6, PAD]
    assert labels[0, :3].tolist() == [6, END, PAD]
    seen = set()
    for seed in range(20):
        drawn = table.numbers(source, np.random.default_rng(seed))
        assert sorted(drawn.values()) == [4, 5, 6]
        assert table.decode(table.encode(source, drawn), drawn) == source
        seen.add(drawn["zoe"])
    assert seen == {4, 5, 6}
    # With more rare words than slots, the last ones are unknown.
    assert len(table.numbers([*"abcdef"])) == 3
    with pytest.raises(ValueError, match="`slots` must not be negative"):
        CopyTable([], -1)


def test_copy_table_roundtrip(tmp_path):
    table = CopyTable(["a", "b"], 5)
    table.save(tmp_path / "words.json")
    assert vars(CopyTable.load(tmp_path / "words.json")) == vars(table)
