"""The picture of the README has one version for each color scheme."""

import matplotlib.colors
import numpy as np
import pytest

from tools.readme_picture import SCHEMES, draw

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colors_and_tokens(scheme):
    weights = np.eye(2, 3)
    figure = draw(weights, ["el", "gato"], ["the", "cat", "</s>"], scheme)
    ink, paper, _ = SCHEMES[scheme]
    panel = figure.axes[0]
    assert figure.get_facecolor() == matplotlib.colors.to_rgba(paper)
    labels = panel.get_xticklabels()
    assert [label.get_text() for label in labels] == ["the", "cat", "</s>"]
    assert {label.get_color() for label in labels} == {ink}
    np.testing.assert_allclose(panel.images[0].get_array(), weights)
    assert panel.get_title() == ""
