"""deletion_and_insertion: curves of known functions."""

import numpy as np
import pytest

from keras_attn.explain import (
    PatchMasks,
    TokenMasks,
    deletion_and_insertion,
)

WORTH = np.array([0.1, 0.4, 0.2, 0.3])
IDS = np.array([5, 6, 7, 8])
MASKS = TokenMasks(mask_id=1)


def worth(ids):
    """Sums the worth of the visible tokens."""
    return (WORTH * (ids != 1)).sum(axis=1)


def test_curves_of_an_additive_score():
    found = deletion_and_insertion(worth, IDS, WORTH, MASKS, batch_size=3)
    np.testing.assert_allclose(found.fractions, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(found.deletion, [1, 0.6, 0.3, 0.1, 0])
    np.testing.assert_allclose(found.insertion, [0, 0.4, 0.7, 0.9, 1])
    assert found.deletion_area == pytest.approx(0.375)
    assert found.insertion_area == pytest.approx(0.625)


def test_the_true_saliency_is_optimal():
    best = deletion_and_insertion(worth, IDS, WORTH, MASKS)
    draw = np.random.default_rng(0)
    for _ in range(20):
        other = deletion_and_insertion(worth, IDS, draw.random(4), MASKS)
        assert other.deletion_area >= best.deletion_area - 1e-9
        assert other.insertion_area <= best.insertion_area + 1e-9


def test_images_in_a_few_steps():
    image = np.arange(12, dtype="float32").reshape(3, 4)

    def brightness(images):
        return images.sum(axis=(1, 2))

    found = deletion_and_insertion(
        brightness, image, image, PatchMasks(), steps=3
    )
    np.testing.assert_allclose(found.fractions, [0, 4 / 12, 8 / 12, 1])
    np.testing.assert_allclose(found.deletion, [66, 28, 6, 0])


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_maps_of_any_dtype(dtype):
    saliency = np.array([0, 3, 1, 0]).astype(dtype)
    found = deletion_and_insertion(worth, IDS, saliency, MASKS)
    expected = deletion_and_insertion(
        worth, IDS, saliency.astype("float64"), MASKS
    )
    np.testing.assert_array_equal(found.deletion, expected.deletion)
    assert found.deletion[1] == pytest.approx(0.6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"saliency": np.ones(3)}, "`saliency` must have one value per"),
        ({"saliency": WORTH * np.nan}, "must not contain NaN"),
        ({"steps": 0}, "`steps`"),
        ({"function": lambda ids: np.ones((len(ids), 2))}, "one score for"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    given = {
        "function": worth,
        "inputs": IDS,
        "saliency": WORTH,
        "masks": MASKS,
    }
    with pytest.raises(ValueError, match=message):
        deletion_and_insertion(**(given | arguments))
