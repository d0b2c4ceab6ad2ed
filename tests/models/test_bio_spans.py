"""Entities of tags, against the rules of conlleval written out."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.models import align_labels_with_tokens, bio_spans

TAGS = ["O", "B-x", "I-x", "B-y", "I-y"]


def by_conlleval(tags):
    """Where a chunk starts and ends, by the conditions of that program."""
    found, start = [], None
    marks = [(tag[0], tag[2:]) for tag in ["O", *tags, "O"]]
    for place, (before, now) in enumerate(itertools.pairwise(marks)):
        ends = before[0] != "O" and (now[0] in "BO" or before[1] != now[1])
        if ends:
            found.append((before[1], start, place - 1))
        starts = now[0] == "B" or (
            now[0] == "I" and (before[0] == "O" or before[1] != now[1])
        )
        if starts:
            start = place
    return found


@given(st.lists(st.sampled_from(TAGS), max_size=8))
def test_entities_are_those_of_conlleval(tags):
    assert [tuple(entity) for entity in bio_spans(tags)] == by_conlleval(tags)


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-x", "b-x", "OO"])
def test_what_is_no_tag(tag):
    with pytest.raises(ValueError, match="`tags` must be O, or B- or I-"):
        bio_spans(["O", tag])


def test_labels_stand_on_first_pieces():
    words = [[None, 0, 0, 1, 2, 2, None], [-1, 0, -1]]
    found = align_labels_with_tokens(words, [[4, 0, 6], [5]], length=8)
    assert found.tolist() == [
        [-1, 4, -1, 0, 6, -1, -1, -1],
        [-1, 5, -1, -1, -1, -1, -1, -1],
    ]
    assert found.dtype == "int32"


@pytest.mark.parametrize(
    "words, labels, length, message",
    [
        ([[0]], [], None, "as many rows.*1 and 0"),
        ([], [], None, "at least one.*0 and 0"),
        ([[0, 1]], [[3]], None, "one for each word.*1 labels, and word 1"),
        ([[0, 0]], [[3]], 1, "must not be longer than length=1.*2 pieces"),
    ],
)
def test_labels_that_do_not_fit(words, labels, length, message):
    with pytest.raises(ValueError, match=message):
        align_labels_with_tokens(words, labels, length)
