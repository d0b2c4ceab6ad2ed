"""Implicit masks of tensors without attributes."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock
from keras_attn.ops.mask_carriers import asked_mask, with_mask
from keras_attn.ops.visibility import implicit_mask

pytestmark = pytest.mark.every_backend

IDS = np.array([[0, 3, 4, 5], [3, 4, 5, 6]])


class Seen(keras.layers.Layer):
    """Takes two positional inputs, so that Keras passes no mask."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True
        self.found = []

    def call(self, x, other):
        self.found.append(implicit_mask(x) is not None)
        return x


def test_implicit_mask_in_fit():
    ids = keras.Input((4,), dtype="int32")
    x = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    seen = Seen()
    model = keras.Model(ids, keras.layers.Dense(1)(seen(x, x)))
    seen.found.clear()
    model.compile("sgd", "mse")
    model.fit(IDS, np.zeros((2, 4, 1)), verbose=0)
    assert seen.found and all(seen.found)


def test_decoder_block_in_fit():
    """Left padding is masked only by the implicit mask."""
    ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(9, 8, mask_zero=True)
    block = DecoderBlock(num_heads=2, intermediate_dim=12)
    x = embedding(ids)
    model = keras.Model(ids, keras.layers.Dense(1)(block(x, x)))
    model.compile("sgd", "mse")
    start = model.get_weights()
    after = []
    for padding in (0, 3):
        model.set_weights(start)
        data = np.pad(IDS[1:], ((0, 0), (padding, 0)))
        targets = np.ones((*data.shape, 1))
        # The loss is the mean over unmasked tokens.
        model.fit(data, targets, verbose=0)
        after.append(model.get_weights())
    for alone, padded in zip(*after, strict=True):
        np.testing.assert_allclose(alone, padded, atol=1e-5)


def test_with_mask_sets_implicit_mask():
    x = ops.convert_to_tensor(np.ones((2, 4, 8), "float32"))
    assert asked_mask(x) is None
    carrying = with_mask(x, ops.convert_to_tensor(IDS != 0))
    for mask in (implicit_mask(carrying), asked_mask(carrying)):
        np.testing.assert_array_equal(ops.convert_to_numpy(mask), IDS != 0)
