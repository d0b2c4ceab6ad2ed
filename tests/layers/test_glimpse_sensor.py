"""GlimpseSensor compared with a loop over pixels."""

import functools

import keras
import numpy as np
import pytest

from keras_attn.layers import GlimpseSensor
from tests.helpers import reference
from tests.helpers.contract import check_layer
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import weighted_sum

IMAGES = normal(3, 7, 10, 2)
LOCATIONS = np.float32([[0, 0], [-1, 0.9], [0.35, -0.45]])


@pytest.mark.every_backend
@pytest.mark.parametrize(("size", "patches"), [(4, 3), (3, 2), (1, 1)])
def test_equals_loop_over_pixels(size, patches):
    output = values(GlimpseSensor(size, patches)(IMAGES, LOCATIONS))
    expected = reference.glimpse(IMAGES, LOCATIONS, size, patches)
    assert_close(output, expected)
    # Swapped axes or a flipped sign change the result.
    for wrong in (LOCATIONS[:, ::-1], -LOCATIONS):
        assert_differs(output, reference.glimpse(IMAGES, wrong, size, patches))


def test_centered_patches_equal_the_image():
    images = normal(2, 8, 8, 1)
    center = np.zeros((2, 2), "float32")
    sharp, coarse = np.moveaxis(
        values(GlimpseSensor(4, 2)(images, center)), 1, 0
    )
    assert_close(sharp, images[:, 2:6, 2:6], 1e-6)
    assert_close(coarse, images.reshape(2, 4, 2, 4, 2, 1).mean((2, 4)), 1e-6)


def test_pixels_outside_the_image_are_zero():
    far = np.float32([[3, 3], [-5, 0], [0, 9]])
    assert (values(GlimpseSensor(2, 1)(IMAGES, far)) == 0).all()


@pytest.mark.every_backend
def test_gradients():
    sensor = GlimpseSensor(4, 2)
    upstream = normal(3, 2, 4, 4, 2, seed=1)
    at_images, at_locations = gradient(
        lambda images, locations: weighted_sum(
            sensor(images, locations), upstream
        ),
        IMAGES,
        LOCATIONS,
    )
    assert (at_locations == 0).all()
    # The sensor is linear in the image.
    other = normal(3, 7, 10, 2, seed=2)
    expected = np.sum(values(sensor(other, LOCATIONS)) * upstream)
    np.testing.assert_allclose(np.sum(at_images * other), expected, rtol=1e-4)


def test_contract():
    check_layer(
        functools.partial(GlimpseSensor, 4, num_patches=2),
        (IMAGES, LOCATIONS),
        masks=False,
        trains=False,
        dynamic=False,
    )


@pytest.mark.every_backend
def test_images_of_unknown_size():
    images, locations = keras.Input((None, None, 2)), keras.Input((2,))
    model = keras.Model(
        [images, locations], GlimpseSensor(3, 2)(images, locations)
    )
    assert model.output_shape == (None, 2, 3, 3, 2)
    output = model.predict([IMAGES, LOCATIONS], verbose=0)
    assert_close(output, reference.glimpse(IMAGES, LOCATIONS, 3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GlimpseSensor(0), "`patch_size` must be at least 1"),
        (lambda: GlimpseSensor(2, 1.5), "`num_patches` must be an integer"),
        (
            lambda: GlimpseSensor(2)(IMAGES[0], LOCATIONS),
            "`images` must have ran",
        ),
        (
            lambda: GlimpseSensor(2)(IMAGES, LOCATIONS[:2]),
            "`locations` must have",
        ),
        (
            lambda: GlimpseSensor(2)(IMAGES, LOCATIONS[0]),
            "`locations` must have",
        ),
    ],
)
def test_invalid_inputs_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
