"""Readers of JSON files, and where in a file an error is."""

import json

import pytest

from keras_attn import datasets
from keras_attn.datasets import DataFileError

squad, disfl_qa = datasets.read_squad, datasets.read_disfl_qa
turns = datasets.read_restaurants8k
CONTEXT = "Él ve a Ann 👋. Ann sits in Oslo."
ANSWERS = [
    {"text": "Ann", "answer_start": 15},
    {"text": "Oslo", "answer_start": 27},
    {"text": "Ann", "answer_start": 15},
    {"text": "Ann", "answer_start": 8},
]
QUESTION = {"id": "q7", "question": "Who?", "answers": ANSWERS}
IMPOSSIBLE = {"id": "q8", "question": "Why?", "is_impossible": True}
IMPOSSIBLE |= {"answers": [], "plausible_answers": ANSWERS}
PARAGRAPH = {"context": CONTEXT, "qas": [QUESTION, IMPOSSIBLE]}
SQUAD = {"data": [{"paragraphs": []}, {"paragraphs": [PARAGRAPH]}]}
TEXTS = {"original": "¿Quién?", "disfluent": "¿Qué uh quién?", "more": 3}
DISFL_QA = {"b": TEXTS, "a": TEXTS}


def label(slot, **span):
    return {"slot": slot, "valueSpan": span}


TIME = label("time", startIndex=7, endIndex=8)
PEOPLE = label("people", startIndex=2, endIndex=3)
TURNS = [
    {"userInput": {"text": "Thank you 👋"}},
    {
        "userInput": {"text": "👋 4 at 6, Ann"},
        "context": {"requestedSlots": ["time", "people"]},
        "labels": [TIME, PEOPLE],
    },
    {"userInput": {"text": "Ann"}, "labels": [label("first_name", endIndex=3)]},
]
FOUND = [
    ("Who?", CONTEXT, (("Ann", 15), ("Oslo", 27), ("Ann", 8))),
    ("Why?", CONTEXT, ()),
]
VALUES = ("people", "4", 2), ("time", "6", 7)
FOUND_TURNS = [
    ("Thank you 👋", (), ()),
    ("👋 4 at 6, Ann", ("time", "people"), VALUES),
    ("Ann", (), (("first_name", "Ann", 0),)),
]


@pytest.mark.parametrize(
    "read, content, expected",
    [
        (squad, SQUAD, FOUND),
        (disfl_qa, DISFL_QA, 2 * [("¿Qué uh quién?", "¿Quién?", "")]),
        (turns, TURNS, FOUND_TURNS),
    ],
)
def test_records(write, read, content, expected):
    assert read(write("a.json", json.dumps(content))) == expected
    text = json.dumps(content, indent=1, ensure_ascii=False)
    assert read(write("a.json.gz", text)) == expected


QA7, QA8, QA = "question 'q7'", "question 'q8'", "question 'a'"
A = {"a": TEXTS}
# A reader, a valid file, what is replaced by what, and the message.
INVALID = [
    (squad, SQUAD, "27", "26", f"{QA7}: expected the answer 'Oslo' at"),
    (squad, SQUAD, "27", "-5", f"{QA7}: expected the answer 'Oslo' at"),
    (squad, SQUAD, '"Oslo"', '""', f"{QA7}: expected the answer ''"),
    (squad, SQUAD, json.dumps(ANSWERS), "[]", f"{QA7}: expected at least"),
    (squad, SQUAD, '8", "question"', '8", "a"', f"{QA8}: expected a f"),
    (squad, SQUAD, '"Why?"', "3", f"{QA8}: `question` must be a str"),
    (squad, SQUAD, '"context": "', '"a": "', "paragraph 1: expected a f"),
    (squad, SQUAD, json.dumps(QUESTION), '"a"', f"{QA}: expected another"),
    (squad, SQUAD, '"data"', '"a"', "top level: expected a field 'data'"),
    (squad, SQUAD, json.dumps(PARAGRAPH), "", "expected at least one que"),
    (disfl_qa, {}, "", "", "expected at least one question"),
    (disfl_qa, [], "", "", "top level: expected another structure"),
    (disfl_qa, A, "original", "a", f"{QA}: expected a field 'original'"),
    (disfl_qa, A, json.dumps("¿Quién?"), "3", f"{QA}: `original` must be"),
    (turns, {}, "", "", "top level: expected a list of turns"),
    (turns, [], "", "", "expected at least one turn"),
    (turns, TURNS, "userInput", "a", "turn 1: expected a field"),
    (turns, TURNS, '{"text": "Ann"}', "3", "turn 3: expected an"),
    (turns, TURNS, '"Ann"', '"An"', "turn 3: expected a span in"),
    (turns, TURNS, ": 7,", ": 8,", "turn 2: expected a span in the 13 chara"),
    (turns, TURNS, '"people"]', "3]", "turn 2: `requestedSlots`"),
    (turns, TURNS, '"time", "v', '3, "v', "turn 2: `slot` must"),
]


@pytest.mark.parametrize("read, content, old, new, message", INVALID)
def test_invalid_records_raise(write, read, content, old, new, message):
    text = json.dumps(content)
    assert old in text
    path = write("a.json", text.replace(old, new, 1))
    with pytest.raises(DataFileError) as info:
        read(path)
    assert str(info.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected JSON"),
        ('{"data":\n\n[,]}', "line 3: expected JSON"),
        (b'{\n"data": "\xff"}', "line 2: expected UTF-8"),
        ("[" * 100_000, "expected JSON, received an error: max"),
        ("[]", "expected another structure"),
        ("1" * 5000, "expected JSON"),
    ],
)
def test_invalid_json_raises(write, text, message):
    with pytest.raises(DataFileError, match=message):
        squad(write("a.json", text))


def test_written_questions_are_read_back(write, tmp_path):
    questions = [
        *squad(write("a.json", json.dumps(SQUAD))),
        *datasets.make_questions(9),
    ]
    path = tmp_path / "b.json"
    datasets.write_squad(path, questions)
    assert squad(path) == questions
    version, articles = json.loads(path.read_text("utf-8")).values()
    assert version == "2.0"
    row = articles[0]["paragraphs"][0]["qas"][0]
    assert row["answers"] == [ANSWERS[0], ANSWERS[1], ANSWERS[3]]


def test_slots_as_questions(write):
    found = datasets.slot_questions(turns(write("a.json", json.dumps(TURNS))))
    names = "first name", "people", "time"
    requested = [f"{name} requested time people" for name in names]
    asked = [question.question for question in found]
    assert asked == [*names, *requested, *names]
    texts = [question.context for question in found[::3]]
    assert texts == [turn[0] for turn in FOUND_TURNS]
    answers = [question.answers for question in found]
    spans = [(("4", 2),), (("6", 7),), (("Ann", 0),)]
    assert answers == [(), (), (), (), *spans, (), ()]
