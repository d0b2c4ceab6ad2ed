"""Sinusoids at the largest position and beyond it."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.ops import sinusoid
from keras_attn.ops.sinusoids import sine_and_cosine

pytestmark = pytest.mark.every_backend

LAST = 131_071


def test_largest_position_is_exact():
    sine, cosine = sine_and_cosine(ops.convert_to_tensor([[LAST]]), 4)
    angles = LAST * 10000.0 ** (-np.array([0, 2]) / 4)
    for found, expected in ((sine, np.sin(angles)), (cosine, np.cos(angles))):
        found = ops.convert_to_numpy(found)[0, 0]
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("function", [sine_and_cosine, sinusoid])
def test_too_large_position_raises(function):
    positions = ops.convert_to_tensor([[0, LAST + 1]])
    with pytest.raises(ValueError, match=r"at most 131,071.*131,072"):
        function(positions, 4)


class Sine(keras.layers.Layer):
    def call(self, positions):
        return sine_and_cosine(positions, 4)[0]


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="this model is not compiled"
)
def test_too_large_position_is_nan_in_compiled_code():
    positions = keras.Input((2,), dtype="int32")
    model = keras.Model(positions, Sine()(positions))
    found = model.predict_on_batch(np.array([[LAST, LAST + 1]], "int32"))
    assert np.isfinite(found[0, 0]).all() and np.isnan(found[0, 1]).all()
