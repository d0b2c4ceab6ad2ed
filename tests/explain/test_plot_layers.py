"""The figures of the logit lens and of patches."""

import numpy as np
import pytest

from keras_attn.explain import PatchScores, plot_logit_lens, plot_patch

pytestmark = pytest.mark.one_backend
pytest.importorskip("matplotlib")

LOGITS = np.log(
    [
        [[[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]] * 2,
        [[[0.1, 0.1, 0.8], [0.05, 0.9, 0.05]]] * 2,
    ]
)
SCORES = np.array([[1.0, 3.0, 1.0], [1.0, 2.0, 0.0]])


def test_logit_lens_has_the_most_likely_tokens():
    figure = plot_logit_lens(
        LOGITS, ["$x$", "a\n"], lambda ids: [f"<{i}>" for i in ids], row=1
    )
    axes, bar = figure.axes
    # Unnormalized logits give the same figure.
    shifted = plot_logit_lens(LOGITS + 100)
    image, other = (figure.axes[0].images[0] for figure in (figure, shifted))
    np.testing.assert_allclose(image.get_array(), [[0.5, 0.6], [0.8, 0.9]])
    np.testing.assert_allclose(other.get_array(), image.get_array())
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts == {
        (0, 0): "<0>",
        (1, 0): "<2>",
        (0, 1): "<2>",
        (1, 1): "<1>",
    }
    assert [text.get_text() for text in shifted.axes[0].texts[:2]] == ["0", "2"]
    # The embeddings are at the bottom.
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["embeddings", "block 0"]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["$x$", "a\\n"]
    assert bar.get_ylabel() == "probability"
    figure.draw_without_rendering()


def test_patches_are_drawn_as_restored_scores():
    figure = plot_patch(PatchScores(SCORES, 3.0, 1.0), title="Patches")
    axes, bar = figure.axes
    image = axes.images[0]
    np.testing.assert_allclose(image.get_array(), [[0, 1, 0], [0, 0.5, -0.5]])
    assert image.get_clim() == (-1, 1)
    assert (axes.get_title(), axes.get_xlabel()) == ("Patches", "position")
    assert bar.get_ylabel() == "restored score"
    figure = plot_patch(PatchScores(SCORES, 2.0, 1.0), ax=axes)
    assert figure.axes[0] is axes
    assert axes.images[-1].get_clim() == (-2, 2)


def test_arguments_raise():
    patched = PatchScores(SCORES, 3.0, 1.0)
    for arguments, message in (
        ((SCORES,), "`patched` must be a `PatchScores`"),
        ((PatchScores(SCORES[0], 3.0, 1.0),), r"`scores`.*\(3,\)"),
        ((PatchScores(SCORES, 1.0, 1.0),), "different scores"),
        ((PatchScores(SCORES, np.nan, 1.0),), "`clean`"),
        ((patched, ["a"]), "`tokens` .* 3 positions.*1 tokens"),
        ((patched, None, None, 3), "`ax` must be matplotlib axes"),
        ((patched, None, None, None, "no map"), "`cmap`"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_patch(*arguments)
    for options, message in (
        ({"logits": LOGITS[0]}, r"`logits`.*\(2, 2, 3\)"),
        ({"logits": LOGITS + np.inf}, "`logits` must be finite"),
        ({"row": 2}, "`row`"),
        ({"names": 3}, "`names` must be callable"),
        ({"names": lambda ids: "a"}, "`names` must return a list of 2"),
        ({"title": 3}, "`title`"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_logit_lens(**({"logits": LOGITS} | options))
