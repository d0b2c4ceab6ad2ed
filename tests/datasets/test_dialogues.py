"""Dialogue turns: values and their positions, against patterns."""

import collections
import itertools
import re

import pytest

from keras_attn.datasets import make_dialogues
from keras_attn.datasets.booking_grammar.values import FIRST_NAMES, LAST_NAMES

NUMBER = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
NUMBER = rf"(\d{{1,2}}|{NUMBER})"
DAY = "(mon|tues|wednes|thurs|fri|satur|sun)day"
MONTH = (
    "(january|february|march|april|may|june|july|august|september|october|"
    "november|december)"
)
NTH = r"\d{1,2}(st|nd|rd|th)"
PATTERNS = {
    "people": f"{NUMBER}( adults and {NUMBER} (child|children|kids?|bab\\w+))?",
    "time": f"{NUMBER}( o'clock| thirty| fifteen| forty-five)?|noon|"
    f"\\d{{1,2}}(:\\d\\d)?( ?[ap]m)?|(half|quarter) (past|to) {NUMBER}|"
    f"{NUMBER} in the (morning|afternoon|evening)",
    "date": f"(next |this |this coming |a week from )?{DAY}|"
    f"({DAY} )?the {NTH}( of {MONTH})?|({DAY}, )?{MONTH} \\d+(st|nd|rd|th)?|"
    f"({DAY} )?\\d+(st|nd|rd|th)? {MONTH}|today|tonight|tomorrow( night)?|"
    "the day after tomorrow|in (two|three) days|a week from today|"
    "(christmas|new year's) eve|valentine's day",
    "first_name": "|".join(FIRST_NAMES).lower(),
    "last_name": "|".join(LAST_NAMES).lower(),
}
# What remains of a turn with values has no further one, except what is changed.
LEFT = re.compile(f"\\b({NUMBER}|{DAY}|{NTH}|june|july)\\b")
CHANGED = re.compile("not |from |instead|too (late|early)|does not work")


@pytest.fixture(scope="module")
def turns():
    return make_dialogues(10_000, seed=1) + make_dialogues(10_000, seed=2)


def test_values_are_in_the_text(turns):
    names, sizes = collections.Counter(), collections.Counter()
    for text, requested, slots in turns:
        assert set(requested) <= set(PATTERNS)
        rest, last = text.lower(), 0
        assert len({slot.name for slot in slots}) == len(slots)
        for name, value, start in slots:
            assert text[start : start + len(value)] == value and start >= last
            assert re.fullmatch(PATTERNS[name], value.lower()), value
            last = start + len(value)
            rest = rest[:start] + "_" * len(value) + rest[last:]
            names[name] += 1
        if slots and not CHANGED.search(rest):
            assert not LEFT.search(rest), text
        assert "  " not in text and text == text.strip()
        assert not re.search(r"[\[\]{}|]", text)
        sizes[len(slots)] += 1
        # Numbers without a value.
        sizes["other numbers"] += bool(not slots and re.search(r"\d", text))
    assert min(names.values()) > 1500
    assert 0.15 < sizes[0] / len(turns) < 0.25
    assert min(sizes[k] for k in range(1, 6)) > 50
    assert sizes["other numbers"] > 200


def test_the_request_decides(turns):
    found, seen = collections.defaultdict(set), {}
    for text, requested, slots in turns:
        # One set of values per text and request.
        assert seen.setdefault((text, requested), slots) == slots
        found[text].add(tuple(slot.name for slot in slots))
    assert len(found) > 18_000
    for names in (("time", "people"), ("first_name", "last_name")):
        kinds = {(name,) for name in names}
        assert any(kinds <= others for others in found.values())


def values(turns):
    return {(name, value.lower()) for t in turns for name, value, _ in t.slots}


def wordings(turns):
    found = set()
    for text, _, slots in turns:
        for _, value, start in slots[::-1]:
            text = text[:start] + "_" + text[start + len(value) :]
        words = re.findall(r"[\w']+", re.sub(r"\d+", "_", text.lower()))
        found |= {*words, *itertools.pairwise(words)}
    return found


def test_values_and_wordings_are_held_out(turns):
    known_values, known_wordings = values(turns), wordings(turns)
    test = make_dialogues(500, seed=3, split="test")
    is_new = [not wordings([turn]) <= known_wordings for turn in test]
    assert 125 < sum(is_new) < 400
    for new, turn in zip(is_new, test, strict=True):
        assert new or not values([turn]) <= known_values, turn
    held_out = values(test) - known_values
    assert {name for name, _ in held_out} == set(PATTERNS)
    assert ("first_name", "alice") in held_out
