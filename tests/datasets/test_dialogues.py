"""Dialogue turns: values and their positions, against patterns."""

import collections
import itertools
import re

import pytest

from keras_attn.datasets import make_dialogues
from keras_attn.datasets.booking_grammar.values import FIRST_NAMES, LAST_NAMES

pytestmark = pytest.mark.one_backend

NUMBER = (
    r"(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
)
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
    return make_dialogues(20_000, seed=1)


def test_values_are_in_the_text(turns):
    names = collections.Counter()
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
    assert min(names.values()) > 1500


def test_kinds_of_turns(turns):
    """Many turns have no value, several values, or only values."""
    sizes = collections.Counter(len(turn.slots) for turn in turns)
    assert 0.15 < sizes[0] / len(turns) < 0.25
    assert min(sizes[k] for k in range(1, 6)) > 50
    texts = collections.Counter(turn.text for turn in turns)
    assert len(texts) > 18_000
    # Numbers without a value.
    empty = [turn.text for turn in turns if not turn.slots]
    assert sum(bool(re.search(r"\d", text)) for text in empty) > 200


def test_the_request_decides(turns):
    found, seen = collections.defaultdict(set), {}
    for text, requested, slots in [*turns, *make_dialogues(20_000, seed=2)]:
        # One set of values per text and request.
        assert seen.setdefault((text, requested), slots) == slots
        found[text].add(tuple(slot.name for slot in slots))
    names = {text for text, kinds in found.items() if len(kinds) > 1}
    assert {"6", "7", "Thomas"} <= {text.strip(".") for text in names}


def test_values_and_wordings_are_held_out(turns):
    def values(turns):
        return {
            (slot.name, slot.value.lower()) for t in turns for slot in t.slots
        }

    def wordings(turns):
        found = set()
        for text, _, slots in turns:
            for slot in slots[::-1]:
                stop = slot.start + len(slot.value)
                text = text[: slot.start] + "_" + text[stop:]
            words = re.findall(r"[\w']+", re.sub(r"\d+", "_", text.lower()))
            found |= {*words, *itertools.pairwise(words)}
        return found

    train = values(turns), wordings(turns)
    test = make_dialogues(1000, seed=3, split="test")
    new_wordings = 0
    for turn in test:
        is_new = not wordings([turn]) <= train[1]
        assert is_new or not values([turn]) <= train[0], turn
        new_wordings += is_new
    assert 250 < new_wordings < 800
    held_out = values(test) - train[0]
    assert {name for name, _ in held_out} == set(PATTERNS)
    assert ("first_name", "alice") in held_out
