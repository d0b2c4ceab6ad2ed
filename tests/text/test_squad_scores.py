"""Exact match and F1 of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.text import squad_scores, squad_threshold

pytestmark = pytest.mark.one_backend


# As of evaluate-v2.0.py of SQuAD.
@pytest.mark.parametrize(
    "prediction, references, expected",
    [
        ("The Red Box!", ["the red box", "a box", "the"], (1, 1)),
        ("red box here", ["the red box", "a box", "the"], (0, 0.8)),
        ("in the box", ["a box in", "box"], (0, 1)),
        ("box box box", ["box", "a box, a box"], (0, 0.8)),
        ("Theatre, an-swer", ["theatre answer"], (1, 1)),
        ("New York", ["york new"], (0, 1)),
        ("café – naïve", ["Café naïve"], (0, 0.8)),
        ("", ["the red box", "the"], (0, 0)),
        ("the", ["a"], (1, 1)),
        ("the box", ["the"], (0, 0)),
        ("", [], (1, 1)),
        ("an", [], (1, 1)),
        ("box", [], (0, 0)),
    ],
)
def test_scores(prediction, references, expected):
    assert squad_scores(prediction, references) == pytest.approx(expected)


TEXTS = st.text(alphabet="abthe .,", max_size=12)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_properties(prediction, references):
    exact, f1 = squad_scores(prediction, references)
    assert exact in (0, 1) and 0 <= f1 <= 1 and (f1 == 1 or not exact)
    assert squad_scores(prediction, [*references, prediction]).exact_match in (
        exact,
        1.0,
    )
    assert squad_scores(prediction, references[::-1]) == (exact, f1)
    # F1 is symmetric.
    first = squad_scores(prediction, references[:1])
    assert squad_scores(references[0], [prediction]) == pytest.approx(first)


@given(
    st.lists(
        st.tuples(st.sampled_from(["a b", "b c"]), st.integers(-3, 3)),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_threshold_maximizes_f1(answers, data):
    predictions, scores = zip(*answers, strict=True)
    texts = st.sampled_from([[], ["b"], ["b c"], ["d"]])
    size = len(answers)
    references = data.draw(st.lists(texts, min_size=size, max_size=size))

    def total(threshold):
        given = [text if n >= threshold else "" for text, n in answers]
        return sum(s.f1 for s in map(squad_scores, given, references))

    found = squad_threshold(predictions, scores, references)
    best = max(map(total, range(-4, 5)))
    assert total(found) == pytest.approx(best)
    if total(0) == pytest.approx(best):
        assert found == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((["a"], [1.0, 2.0], [[]]), "`scores` and `references` must be as"),
        (([], [], []), "`scores` and `references` must be as many"),
        ((["a"], [float("nan")], [[]]), "`scores` must be a finite number"),
        (("a", [1.0], [[]]), "`predictions` must be an iterable of texts"),
        ((["a"], [1.0], ["a"]), "`references` must be an iterable of texts"),
    ],
)
def test_invalid_arguments_of_the_threshold_raise(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        squad_threshold(*arguments)
