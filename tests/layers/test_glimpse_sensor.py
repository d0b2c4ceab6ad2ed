"""GlimpseSensor against a loop over pixels."""

import functools

import keras
import numpy as np
import pytest

from keras_attn.layers import GlimpseSensor
from tests import reference
from tests.blocks.weight_gradients import weighted_sum
from tests.contract import check_layer
from tests.gradients import gradient
from tests.ops.cases import assert_close, assert_differs, normal, values

IMAGES = normal(3, 7, 10, 2)
PLACES = np.float32([[0, 0], [-1, 0.9], [0.35, -0.45]])


@pytest.mark.parametrize(("size", "patches"), [(4, 3), (3, 2), (1, 1)])
def test_equals_the_loop(size, patches):
    output = values(GlimpseSensor(size, patches)(IMAGES, PLACES))
    expected = reference.glimpse(IMAGES, PLACES, size, patches)
    assert_close(output, expected)
    # x is not y, and up is not down.
    for wrong in (PLACES[:, ::-1], -PLACES):
        assert_differs(output, reference.glimpse(IMAGES, wrong, size, patches))


def test_a_patch_in_the_middle_is_the_image():
    images = normal(2, 8, 8, 1)
    middle = np.zeros((2, 2), "float32")
    sharp, coarse = np.moveaxis(
        values(GlimpseSensor(4, 2)(images, middle)), 1, 0
    )
    assert_close(sharp, images[:, 2:6, 2:6], 1e-6)
    assert_close(coarse, images.reshape(2, 4, 2, 4, 2, 1).mean((2, 4)), 1e-6)


def test_nothing_is_seen_outside():
    far = np.float32([[3, 3], [-5, 0], [0, 9]])
    assert (values(GlimpseSensor(2, 1)(IMAGES, far)) == 0).all()


def test_gradients():
    sensor = GlimpseSensor(4, 2)
    upstream = normal(3, 2, 4, 4, 2, seed=1)
    at_images, at_places = gradient(
        lambda images, places: weighted_sum(sensor(images, places), upstream),
        IMAGES,
        PLACES,
    )
    assert (at_places == 0).all()
    # Linear in the image: what it adds to an image is its gradient times that.
    other = normal(3, 7, 10, 2, seed=2)
    expected = np.sum(values(sensor(other, PLACES)) * upstream)
    np.testing.assert_allclose(np.sum(at_images * other), expected, rtol=1e-4)


def test_contract():
    check_layer(
        functools.partial(GlimpseSensor, 4, num_patches=2),
        (IMAGES, PLACES),
        masks=False,
        trains=False,
        dynamic=False,
    )


def test_images_of_any_size():
    images, places = keras.Input((None, None, 2)), keras.Input((2,))
    model = keras.Model([images, places], GlimpseSensor(3, 2)(images, places))
    assert model.output_shape == (None, 2, 3, 3, 2)
    output = model.predict([IMAGES, PLACES], verbose=0)
    assert_close(output, reference.glimpse(IMAGES, PLACES, 3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GlimpseSensor(0), "`patch_size` must be a positive"),
        (lambda: GlimpseSensor(2, 1.5), "`num_patches` must be a positive"),
        (lambda: GlimpseSensor(2)(IMAGES[0], PLACES), "`images` must have ran"),
        (lambda: GlimpseSensor(2)(IMAGES, PLACES[:2]), "`locations` must have"),
        (lambda: GlimpseSensor(2)(IMAGES, PLACES[0]), "`locations` must have"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
