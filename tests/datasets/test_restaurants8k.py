"""Turns of booking dialogues."""

import copy
import json

import pytest

from keras_attn.datasets import DataFileError, read_restaurants8k

pytestmark = pytest.mark.one_backend

TURNS = [
    {"userInput": {"text": "Thank you 👋"}},
    {
        "userInput": {"text": "👋 4 at 6, Ann"},
        "context": {"requestedSlots": ["time", "people"]},
        "labels": [
            {"slot": "time", "valueSpan": {"startIndex": 7, "endIndex": 8}},
            {"slot": "people", "valueSpan": {"startIndex": 2, "endIndex": 3}},
        ],
    },
    {
        "userInput": {"text": "Ann"},
        "labels": [{"slot": "first_name", "valueSpan": {"endIndex": 3}}],
    },
]


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_turns(write, name):
    assert read_restaurants8k(write(name, json.dumps(TURNS))) == [
        ("Thank you 👋", (), ()),
        (
            "👋 4 at 6, Ann",
            ("time", "people"),
            (("people", "4", 2), ("time", "6", 7)),
        ),
        ("Ann", (), (("first_name", "Ann", 0),)),
    ]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t[0].clear(), "turn 1: expected a field 'userInput'"),
        (lambda t: t[0].update(userInput=3), "turn 1: expected another struc"),
        (lambda t: t[2]["userInput"].update(text=3), "turn 3: `text` must be"),
        (lambda t: t[2]["userInput"].update(text="An"), "turn 3: .* 0 to 3"),
        (lambda t: t[1].update(context={"requestedSlots": [3]}), "`requested"),
        (lambda t: t[1]["labels"][0].update(slot=3), "turn 2: `slot` must be"),
        (
            lambda t: t[1]["labels"][0]["valueSpan"].update(startIndex=8),
            "turn 2: expected a span in the 13 characters .* received 8 to 8",
        ),
        (lambda t: t.clear(), "at least one turn"),
    ],
)
def test_invalid_turns_raise(write, change, message):
    turns = copy.deepcopy(TURNS)
    change(turns)
    with pytest.raises(DataFileError, match=message):
        read_restaurants8k(write("a.json", json.dumps(turns)))


def test_other_json_raises(write):
    with pytest.raises(
        DataFileError, match="expected a list of turns, received"
    ):
        read_restaurants8k(write("a.json", "{}"))
