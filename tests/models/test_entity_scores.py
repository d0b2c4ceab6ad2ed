"""Precision, recall and F1 of entities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.models import entity_scores

pytestmark = pytest.mark.one_backend


# As of seqeval 1.2.2, whose README has the first one.
@pytest.mark.parametrize(
    "predictions, references, expected",
    [
        (
            ["O O B-MISC I-MISC I-MISC I-MISC O", "B-PER I-PER O"],
            ["O O O B-MISC I-MISC I-MISC O", "B-PER I-PER O"],
            (0.5, 0.5, 0.5),
        ),
        (["B-a I-a B-a"], ["B-a I-a I-a"], (0, 0, 0)),
        (["I-a I-a O B-b"], ["B-a I-a O B-a"], (0.5, 0.5, 0.5)),
        (["B-a O", "B-b B-b"], ["B-a O", "O B-b"], (2 / 3, 1, 0.8)),
        (["O O"], ["O B-a"], (0, 0, 0)),
        (["O"], ["O"], (0, 0, 0)),
        ([""], [""], (0, 0, 0)),
        ([], [], (0, 0, 0)),
    ],
)
def test_scores(predictions, references, expected):
    rows = ([text.split() for text in x] for x in (predictions, references))
    assert entity_scores(*rows) == pytest.approx(expected)


TAGS = st.lists(st.sampled_from(["O", "B-a", "I-a", "B-b"]), max_size=6)


@given(st.lists(TAGS, max_size=4), st.randoms(use_true_random=False))
def test_properties(references, random):
    predictions = [random.sample(tags, len(tags)) for tags in references]
    precision, recall, f1 = entity_scores(predictions, references)
    other = entity_scores(iter(references), map(tuple, predictions))
    assert other == (recall, precision, f1)
    if precision + recall:
        mean = 2 * precision * recall / (precision + recall)
        assert f1 == pytest.approx(mean)
    assert set(entity_scores(references, references)) <= {0.0, 1.0}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([["O"]], []), "`predictions` must have one tag .* 1 and 0 sentences"),
        (([["O"]], [["O", "O"]]), "`predictions` must .*: .* 1 and 2 tags"),
        (("O", ["O"]), "`predictions` must be a list of lists of BIO tags"),
        (([["O"]], [["X"]]), "`references` must be a list .* Received: 'X'"),
        (([["O"]], ["O"]), "`references` must be a list of lists of BIO tags"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        entity_scores(*arguments)
