"""`bio_spans` against the chunk rules of conlleval."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.models import align_labels_with_tokens, bio_spans

TAGS = ["O", "B-x", "I-x", "B-y", "I-y"]


def by_conlleval(tags):
    """Returns chunks by the start and end conditions of conlleval."""
    found, start = [], None
    tag_parts = [(tag[0], tag[2:]) for tag in ["O", *tags, "O"]]
    for index, (previous, current) in enumerate(itertools.pairwise(tag_parts)):
        ends = previous[0] != "O" and (
            current[0] in "BO" or previous[1] != current[1]
        )
        if ends:
            found.append((previous[1], start, index - 1))
        starts = current[0] == "B" or (
            current[0] == "I"
            and (previous[0] == "O" or previous[1] != current[1])
        )
        if starts:
            start = index
    return found


@given(st.lists(st.sampled_from(TAGS), max_size=8))
def test_equals_conlleval(tags):
    assert [tuple(entity) for entity in bio_spans(tags)] == by_conlleval(tags)


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-x", "b-x", "OO"])
def test_invalid_tag_raises(tag):
    with pytest.raises(ValueError, match="`tags` must be O, or B- or I-"):
        bio_spans(["O", tag])


def test_labels_are_on_first_pieces():
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
        ([[0]], [], None, "same number of rows.*1 and 0"),
        ([], [], None, "at least one.*0 and 0"),
        ([[0, 1]], [[3]], None, "one label per word.*1 labels, and word 1"),
        ([[0, 0]], [[3]], 1, "must not be longer than length=1.*2 pieces"),
    ],
)
def test_mismatched_labels_raise(words, labels, length, message):
    with pytest.raises(ValueError, match=message):
        align_labels_with_tokens(words, labels, length)
