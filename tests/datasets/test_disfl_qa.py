"""Questions in the format of Disfl-QA."""

import json

import pytest

from keras_attn.datasets import DataFileError, read_disfl_qa

pytestmark = pytest.mark.one_backend

TEXTS = {"original": "¿Quién?", "disfluent": "¿Qué uh quién?", "more": 3}


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_questions(write, name):
    path = write(name, json.dumps({"b": TEXTS, "a": TEXTS}))
    question = ("¿Qué uh quién?", "¿Quién?", "")
    assert read_disfl_qa(path) == [question, question]


@pytest.mark.parametrize(
    "content, message",
    [
        ({}, "at least one question"),
        ([TEXTS], "top level: expected another structure"),
        ({"a": "b"}, "question 'a': expected another structure"),
        ({"a": {"disfluent": "b"}}, "'a': expected a field 'original'"),
        ({"a": TEXTS | {"original": 3}}, "'a': `original` must be a str"),
    ],
)
def test_invalid_questions_raise(write, content, message):
    with pytest.raises(DataFileError, match=message):
        read_disfl_qa(write("a.json", json.dumps(content)))
