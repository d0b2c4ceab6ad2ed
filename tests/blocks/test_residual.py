"""Residual against the two equations of its docstring."""

import keras
import numpy as np
import pytest

from keras_attn.blocks import Residual
from tests.helpers.contract import randomize
from tests.helpers.reference import layer_norm

pytestmark = pytest.mark.every_backend

RNG = np.random.default_rng(0)
X, OUTPUT = RNG.normal(size=(2, 2, 3, 8)).astype("float32")


@pytest.mark.parametrize("normalize_first", [False, True])
def test_matches_equation(normalize_first):
    residual = Residual(normalize_first=normalize_first, epsilon=1e-3)
    residual.build(X.shape)
    randomize(residual)
    gain, offset = residual.get_weights()
    pre = keras.ops.convert_to_numpy(residual.pre(X))
    post = keras.ops.convert_to_numpy(
        residual.post(
            keras.ops.convert_to_tensor(X), keras.ops.convert_to_tensor(OUTPUT)
        )
    )
    if normalize_first:
        expected = layer_norm(X, gain, offset, 1e-3)
        np.testing.assert_allclose(pre, expected, atol=1e-5)
        np.testing.assert_allclose(post, X + OUTPUT, atol=1e-6)
    else:
        np.testing.assert_array_equal(pre, X)
        expected = layer_norm(X + OUTPUT, gain, offset, 1e-3)
        np.testing.assert_allclose(post, expected, atol=1e-5)


def test_dropout_is_applied_to_sublayer_output():
    residual = Residual(dropout=0.5, normalize_first=True)
    residual.build(X.shape)
    x, output = (keras.ops.convert_to_tensor(a) for a in (X, OUTPUT))
    added = keras.ops.convert_to_numpy(
        residual.post(x, output, training=True) - x
    )
    dropped = np.isclose(added, 0, atol=1e-6)
    assert 0 < dropped.mean() < 1
    np.testing.assert_allclose(added[~dropped], 2 * OUTPUT[~dropped], atol=1e-5)


def test_config_round_trips():
    residual = Residual(dropout=0.1, normalize_first=True, epsilon=1e-3)
    again = Residual.from_config(residual.get_config())
    assert again.get_config() == residual.get_config()
    assert (again.dropout, again.normalize_first, again.epsilon) == (
        0.1,
        True,
        1e-3,
    )
    with pytest.raises(ValueError, match=r"`dropout`.*Received"):
        Residual(dropout=1.0)
