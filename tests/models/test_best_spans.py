"""`best_spans` against exhaustive search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.models import best_spans


def by_brute_force(logits, longest, threshold=0.0):
    """Returns the best span and its score by exhaustive search."""
    starts, ends = logits
    none = starts[0] + ends[0]
    best, score = (-1, -1), threshold
    for i in range(len(starts) - 1):
        for j in range(i, min(len(starts) - 1, i + longest)):
            gain = starts[i + 1] + ends[j + 1] - none
            if gain > score:
                best, score = (i, j), gain
    return best, score


@pytest.mark.every_backend
@given(
    seed=st.integers(0, 2**16),
    length=st.integers(1, 7),
    longest=st.one_of(st.none(), st.integers(1, 9)),
)
def test_equals_exhaustive_search(seed, length, longest):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(5, 2, 1 + length)).astype("float32")
    spans = best_spans(logits, longest)
    for row in range(5):
        best, score = by_brute_force(logits[row], longest or length)
        assert (spans.start[row], spans.end[row]) == best
        if best != (-1, -1):
            np.testing.assert_allclose(spans.score[row], score, atol=1e-5)
        else:
            assert spans.score[row] <= 0


@pytest.mark.parametrize("threshold", [1.5, -1, -np.inf])
def test_threshold(threshold):
    logits = np.random.default_rng(0).normal(size=(40, 2, 4)).astype("float32")
    spans = best_spans(logits, threshold=threshold)
    expected = [by_brute_force(row, 3, threshold)[0] for row in logits]
    assert [*zip(spans.start, spans.end, strict=True)] == expected
    assert ((-1, -1) in expected) == np.isfinite(threshold)


def test_end_before_start_is_invalid():
    """The separately best start and end are not a valid span."""
    logits = np.array([[[0, 0, 9.0, 1], [0, 8.0, 0, 1]]], "float32")
    spans = best_spans(logits)
    assert (spans.start[0], spans.end[0]) == (1, 2)


@pytest.mark.parametrize(
    "logits, options, message",
    [
        (np.ones((2, 5)), {}, r"shape \(batch, 2, 1 \+ length\)"),
        (np.ones((2, 3, 5)), {}, r"shape \(batch, 2, 1 \+ length\)"),
        (None, {}, "`logits` must be an array or a tensor of numbers"),
        ("abc", {}, "`logits` must be an array or a tensor of numbers"),
        (1j * np.ones((2, 2, 3)), {}, "`logits` must be .*complex128"),
        (np.full((2, 2, 3), np.nan), {}, "`logits` must not be NaN"),
        (np.full((2, 2, 3), np.inf), {}, r"`logits` must not be NaN or \+inf"),
        (np.ones((2, 2, 1)), {}, r"shape \(batch, 2, 1 \+ length\)"),
        (
            np.ones((2, 2, 3)),
            {"max_answer_length": 0},
            "`max_answer_length` must be",
        ),
    ],
)
def test_invalid_arguments_raise(logits, options, message):
    with pytest.raises(ValueError, match=message):
        best_spans(logits, **options)
