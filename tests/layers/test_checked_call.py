"""Values that argument checks must let through."""

import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import blocks, layers, models
from keras_attn.models.input_checks import check_ids
from keras_attn.ops import Visibility, capture_weights
from tests.test_host_reads import SIZES

pytestmark = pytest.mark.every_backend

X = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")


class First(layers.Dropout):
    """A layer whose call takes a list, under the same name."""

    def call(self, inputs, training=None):
        return inputs[0]


def test_a_subclass_has_its_own_arguments():
    first = First(0.5)([ops.convert_to_tensor(X), ops.zeros((1,))])
    np.testing.assert_array_equal(ops.convert_to_numpy(first), X)
    # The argument of the class itself is checked.
    with pytest.raises(ValueError, match="`inputs` must be a tensor"):
        layers.Dropout(0.5)([X, X])


def test_flags_and_numbers_of_numpy(tmp_path):
    attention = layers.MultiHeadAttention(2, 4)
    expected = attention(X, X, use_causal_mask=True)
    found = attention(X, X, use_causal_mask=np.True_)
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (found, expected)))
    assert Visibility(causal=np.True_).causal
    assert layers.Dropout(np.float32(0.5)).rate == 0.5
    model = models.GPT(11, start_id=np.int64(3), end_id=np.int32(4), **SIZES)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert (loaded.start_id, loaded.end_id) == (3, 4)
    with pytest.raises(ValueError, match="`pad_id` must be an integer"):
        layers.TokenEmbedding(11, 8, pad_id=np.float32(1))


@pytest.mark.parametrize("patterns", [{"look"}, [re.compile("^look$")], "loo"])
def test_patterns_of_captured_layers(patterns):
    attention = layers.MultiHeadAttention(2, 4, name="look")
    with capture_weights(patterns) as captured:
        attention(X, X)
    assert len(captured) == 1


def test_rows_that_are_arrays():
    rows = [[1, 2], np.array([3, 4])]
    assert check_ids("ids", rows, 9).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"`ids` .* lengths \[1, 2\]"):
        check_ids("ids", [np.array([1, 2]), np.array([3])], 9)


def test_a_residual_that_was_not_built():
    residual = blocks.Residual()
    output = residual.post(ops.convert_to_tensor(X), ops.convert_to_tensor(X))
    norm = keras.layers.LayerNormalization(epsilon=1e-5)
    np.testing.assert_allclose(
        *map(ops.convert_to_numpy, (output, norm(2 * X))), atol=1e-5
    )
