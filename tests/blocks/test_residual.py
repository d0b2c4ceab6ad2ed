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


@pytest.mark.parametrize(
    "normalization", ["layer_norm", "bias_free_layer_norm", "rms_norm"]
)
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("normalize_output", [False, True])
@pytest.mark.parametrize("layer_scale", [None, 0.5])
def test_matches_equation_with_options(
    normalization, normalize_first, normalize_output, layer_scale
):
    residual = Residual(
        normalize_first=normalize_first,
        epsilon=1e-3,
        normalization=normalization,
        normalize_output=normalize_output,
        layer_scale=layer_scale,
    )
    residual.build(X.shape)
    randomize(residual)
    weights = {
        weight.path.partition("/")[2]: keras.ops.convert_to_numpy(weight)
        for weight in residual.weights
    }

    def norm(x, name):
        if normalization != "rms_norm":
            biased = normalization == "layer_norm"
            return layer_norm(
                x,
                weights.pop(f"{name}/gamma"),
                weights.pop(f"{name}/beta") if biased else 0.0,
                1e-3,
            )
        size = np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-3)
        return x / size * weights.pop(f"{name}/scale")

    x = keras.ops.convert_to_tensor(X)
    pre = keras.ops.convert_to_numpy(residual.pre(x))
    post = residual.post(x, keras.ops.convert_to_tensor(OUTPUT))
    expected = norm(X, "norm") if normalize_first else X
    np.testing.assert_allclose(pre, expected, atol=1e-5)
    output = norm(OUTPUT, "output_norm") if normalize_output else OUTPUT
    expected = X + output * weights.pop("layer_scale", 1.0)
    if not normalize_first and not normalize_output:
        expected = norm(expected, "norm")
    post = keras.ops.convert_to_numpy(post)
    np.testing.assert_allclose(post, expected, atol=1e-5)
    assert not weights


@pytest.mark.parametrize("normalize_output", [False, True])
def test_the_input_need_not_be_normalized(normalize_output):
    residual = Residual(
        normalize_first=True,
        normalize_input=False,
        normalize_output=normalize_output,
    )
    residual.build(X.shape)
    assert len(residual.weights) == 2 * normalize_output
    x = keras.ops.convert_to_tensor(X)
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(residual.pre(x)), X
    )
    output = keras.ops.convert_to_tensor(OUTPUT)
    found = keras.ops.convert_to_numpy(residual.post(x, output))
    added = layer_norm(OUTPUT, 1.0, 0.0, 1e-5) if normalize_output else OUTPUT
    np.testing.assert_allclose(found, X + added, atol=1e-5)
    with pytest.raises(ValueError, match=r"requires `normalize_first`.*False"):
        Residual(normalize_input=False)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_stochastic_depth_drops_rows(normalize_first):
    residual = Residual(
        stochastic_depth=0.75, normalize_first=normalize_first, layer_scale=0.5
    )
    x = np.tile(X[:1], (64, 1, 1))
    output = np.tile(OUTPUT[:1], (64, 1, 1))
    residual.build(x.shape)
    x, output = (keras.ops.convert_to_tensor(a) for a in (x, output))

    def post(x, factor, training=None):
        found = residual.post(x, factor * output, training=training)
        return keras.ops.convert_to_numpy(found)

    found = post(x, 1.0, training=True)
    kept = np.abs(found - post(x, 4.0)).max((1, 2)) < 1e-5
    dropped = np.abs(found - post(x, 0.0)).max((1, 2)) < 1e-5
    assert (kept ^ dropped).all() and 0 < kept.mean() < 0.6
    np.testing.assert_array_equal(post(x, 1.0), post(x, 1.0, training=False))


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
    residual = Residual(
        dropout=0.1,
        normalize_first=True,
        epsilon=1e-3,
        normalization="rms_norm",
        normalize_output=True,
        normalize_input=False,
        layer_scale=0.5,
        stochastic_depth=0.2,
    )
    again = Residual.from_config(residual.get_config())
    assert again.get_config() == residual.get_config()
    assert (again.dropout, again.normalize_first, again.epsilon) == (
        0.1,
        True,
        1e-3,
    )
    with pytest.raises(ValueError, match=r"`dropout`.*Received"):
        Residual(dropout=1.0)
