"""Questions in SQuAD's format."""

import copy
import json

import pytest

from keras_attn.datasets import DataFileError, read_squad

pytestmark = pytest.mark.one_backend

CONTEXT = "Él ve a Ann 👋. Ann sits in Oslo."
ANSWERS = [
    {"text": "Ann", "answer_start": 15},
    {"text": "Oslo", "answer_start": 27},
    {"text": "Ann", "answer_start": 15},
    {"text": "Ann", "answer_start": 8},
]
QUESTION = {"id": "q7", "question": "Who?", "answers": ANSWERS}
IMPOSSIBLE = {
    "id": "q8",
    "question": "Why?",
    "is_impossible": True,
    "answers": [],
    "plausible_answers": ANSWERS,
}
DATA = {
    "version": "v2.0",
    "data": [
        {"title": "A", "paragraphs": []},
        {
            "title": "B",
            "paragraphs": [{"context": CONTEXT, "qas": [QUESTION, IMPOSSIBLE]}],
        },
    ],
}


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize("options", [{}, {"indent": 1, "ensure_ascii": False}])
def test_questions(write, name, options):
    path = write(name, json.dumps(DATA, **options))
    answered, impossible = read_squad(path)
    assert answered.question == "Who?" and answered.context == CONTEXT
    assert answered.answers == (("Ann", 15), ("Oslo", 27), ("Ann", 8))
    for text, start in answered.answers:
        assert CONTEXT[start:].startswith(text)
    assert impossible == ("Why?", CONTEXT, ())


def changed(change):
    data = copy.deepcopy(DATA)
    change(data, data["data"][1]["paragraphs"][0])
    return json.dumps(data)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda _, p: p["qas"][0]["answers"][1].update(answer_start=26),
            "question 'q7': expected the answer 'Oslo' at character 26, rec",
        ),
        (
            lambda _, p: p["qas"][0]["answers"][1].update(answer_start=-5),
            "expected the answer 'Oslo' at character -5",
        ),
        (
            lambda _, p: p["qas"][0]["answers"][1].update(text=""),
            "expected the answer ''",
        ),
        (lambda _, p: p["qas"][0]["answers"].clear(), "at least one answer"),
        (
            lambda _, p: p["qas"][1].pop("question"),
            "question 'q8': expected a field 'question'",
        ),
        (
            lambda _, p: p["qas"][1].update(question=3),
            "`question` must be a str",
        ),
        (lambda _, p: p.update(context=3), "`context` must be a str"),
        (lambda _, p: p.update(qas=["a"]), "expected another structure"),
        (lambda d, _: d.pop("data"), "top level: expected a field 'data'"),
        (lambda d, _: d["data"].pop(), "at least one question"),
    ],
)
def test_invalid_questions_raise(write, change, message):
    path = write("a.json", changed(change))
    with pytest.raises(DataFileError, match=message) as info:
        read_squad(path)
    assert str(info.value).startswith(f"{path}: ")


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
        read_squad(write("a.json", text))
