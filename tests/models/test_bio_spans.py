"""`bio_spans` against the chunk rules of conlleval."""

import itertools

import numpy as np
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


@pytest.mark.every_backend
@given(st.lists(st.sampled_from(TAGS), max_size=8))
def test_equals_conlleval(tags):
    assert [tuple(entity) for entity in bio_spans(tags)] == by_conlleval(tags)


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-x", "O-x", "OO", 3, None])
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
        (
            [[-2]],
            [[3]],
            None,
            "`words` must hold integers >= -1,.*Received: -2",
        ),
        ([[0.5]], [[3]], None, "`words` must hold integers >= -1"),
        ([[True]], [[3, 4]], None, "`words` must hold integers >= -1"),
        ([["0"]], [[3]], None, "`words` must hold integers >= -1"),
        ([[0]], [[-1]], None, "`labels` must hold integers >= 0"),
        ([[0]], [[2**31]], None, "`labels` must hold integers >= 0"),
        ([[0]], [[1.0]], None, "`labels` must hold integers >= 0"),
        ([[0]], [[None]], None, "`labels` must hold integers >= 0"),
        (None, [[1]], None, "`words` must be a list of rows"),
        ([0], [[1]], None, "`words` must be a list of rows"),
        (["0"], [[1]], None, "`words` must be a list of rows"),
        ([[0]], np.array(1), None, "`labels` must be a list of rows"),
        ([[0]], [[1]], 10**9, "`length` must be at most"),
        ([[0]], [[1]], True, "`length` must be a positive integer"),
    ],
)
def test_mismatched_labels_raise(words, labels, length, message):
    with pytest.raises(ValueError, match=message):
        align_labels_with_tokens(words, labels, length)


def test_rows_may_be_arrays():
    words, labels = np.array([[0, 1, -1]]), [np.array([4, 5])]
    assert align_labels_with_tokens(words, labels).tolist() == [[4, 5, -1]]


@pytest.mark.parametrize("tags", [None, 3, "OOO", b"O", {"O": 1}, np.array(0)])
def test_tags_must_be_a_list(tags):
    with pytest.raises(ValueError, match="`tags` must be a list of str"):
        bio_spans(tags)
