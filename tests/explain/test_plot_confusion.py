"""plot_confusion: rates, labels and invalid arguments."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from keras_attn.explain import plot_confusion

pytestmark = pytest.mark.one_backend

RNG = np.random.default_rng(0)


def test_rates_equal_those_of_scikit_learn():
    references, predictions = RNG.choice(["b", "c", "a"], (2, 50)).tolist()
    (axes,) = plot_confusion(references, predictions).axes
    expected = confusion_matrix(references, predictions, normalize="true")
    (image,) = axes.images
    np.testing.assert_allclose(image.get_array(), expected)
    printed = {text.get_position(): text.get_text() for text in axes.texts}
    assert printed == {
        (column, row): f"{rate:.0%}"
        for (row, column), rate in np.ndenumerate(expected)
        if rate
    }
    for labels in axes.get_xticklabels(), axes.get_yticklabels():
        assert [label.get_text() for label in labels] == ["a", "b", "c"]


def test_label_without_references_has_an_empty_row():
    (axes,) = plot_confusion(["a", "a"], ["a", "b"]).axes
    np.testing.assert_array_equal(
        axes.images[0].get_array(), [[0.5, 0.5], [0, 0]]
    )


def test_many_labels_are_drawn_without_percentages():
    labels = [str(i) for i in range(31)]
    (axes,) = plot_confusion(labels, labels).axes
    assert not axes.texts
    np.testing.assert_array_equal(axes.images[0].get_array(), np.eye(31))


@pytest.mark.parametrize(
    "references, predictions, message",
    [
        ([], [], "`references` and `predictions` must have the same"),
        (["a"], ["a", "b"], "Received: 1 and 2"),
        ("ab", ["a", "b"], "`references` must be a list of str"),
        (["a"], [1], "`predictions` must be a list of str"),
    ],
)
def test_bad_arguments(references, predictions, message):
    with pytest.raises(ValueError, match=message):
        plot_confusion(references, predictions)
