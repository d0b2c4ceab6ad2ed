"""plot_image_attention: panels, brightness and invalid arguments."""

import numpy as np
import pytest

from keras_attn.explain import plot_image_attention

pytestmark = pytest.mark.one_backend

IMAGES = np.full((2, 5, 6, 3), 255, "uint8")
WEIGHTS = np.random.default_rng(0).random((2, 3, 2, 3)).astype("float32")
TOKENS = [["a", "$5 $", "ring"], ["b"]]


def test_one_panel_per_token():
    figure = plot_image_attention(IMAGES, WEIGHTS, TOKENS)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["", "a", "$5 $", "ring", "", "b"]
    figure.draw_without_rendering()


def test_brightness_is_proportional_to_the_weight():
    figure = plot_image_attention(IMAGES, WEIGHTS, TOKENS)
    image, *maps = (panel.images[0].get_array() for panel in figure.axes[:4])
    np.testing.assert_array_equal(image, 1.0)
    for drawn, weight in zip(maps, WEIGHTS[0], strict=True):
        expected = 0.2 + 0.8 * weight / weight.max()
        np.testing.assert_allclose(
            drawn[[0, 4]][:, [0, 3, 5], 0], expected, rtol=1e-5
        )
        # 5 rows of pixels: 3 of the first cell, 2 of the second.
        np.testing.assert_array_equal(drawn[0], drawn[2])
        np.testing.assert_array_equal(drawn[3], drawn[4])


def test_weights_of_zero_are_dark():
    figure = plot_image_attention(IMAGES, 0 * WEIGHTS, TOKENS)
    drawn = figure.axes[1].images[0].get_array()
    np.testing.assert_allclose(drawn, 0.2, rtol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"images": IMAGES[..., :1]},
        {"images": IMAGES[:1]},
        {"images": IMAGES + 1.0},
        {"weights": WEIGHTS[0]},
        {"weights": -WEIGHTS},
        {"weights": WEIGHTS[:, :2]},
        {"tokens": TOKENS[:1]},
        {"tokens": ["abc", "b"]},
    ],
)
def test_invalid_arguments_raise(change):
    given = {"images": IMAGES, "weights": WEIGHTS, "tokens": TOKENS} | change
    with pytest.raises(ValueError, match=r"must have|must be"):
        plot_image_attention(**given)
