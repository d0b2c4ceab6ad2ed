"""MultiHeadAttention compared with Keras's layer, with the same weights."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from tests.helpers.contract import attach_mask, randomize
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.layers.attention_cases import (
    CALLS,
    HOLES,
    KEY,
    QUERY,
    QUERY_MASK,
    RIGHT,
    VALUE,
    B,
    D,
    N,
    T,
    sees,
)

pytestmark = pytest.mark.every_backend

RANDOM = np.random.default_rng(4)


def pair(*shapes, **kwargs):
    """Returns Keras's layer and ours, with the same weights."""
    kwargs = {"num_heads": N, "key_dim": 3, **kwargs}
    theirs = keras.layers.MultiHeadAttention(**kwargs)
    theirs.build(*shapes)
    randomize(theirs)
    ours = keras_attn.layers.MultiHeadAttention(**kwargs)
    ours.build(*shapes)
    ours.set_weights(theirs.get_weights())
    return theirs, ours


def default_pair(**kwargs):
    return pair(QUERY.shape, VALUE.shape, KEY.shape, **kwargs)


@pytest.mark.parametrize("name", CALLS)
def test_masks(name):
    kwargs, call_kwargs, mask = CALLS[name]
    theirs, ours = default_pair(**kwargs)
    # Keras does not define the output of fully masked rows.
    rows = sees(mask)
    call_kwargs = {
        # Keras cannot combine an integer mask with another mask.
        argument: ops.cast(x, "bool") if argument == "attention_mask" else x
        for argument, x in call_kwargs.items()
    }
    output = values(ours(QUERY, VALUE, KEY, **call_kwargs))
    expected = values(theirs(QUERY, VALUE, KEY, **call_kwargs))
    assert_close(output[rows], expected[rows])
    again, weights = ours(
        QUERY, VALUE, KEY, return_attention_scores=True, **call_kwargs
    )
    expected, expected_weights = theirs(
        QUERY, VALUE, KEY, return_attention_scores=True, **call_kwargs
    )
    assert_close(values(again)[rows], values(expected)[rows])
    by_row = values(weights).swapaxes(1, 2)[rows]
    assert_close(by_row, values(expected_weights).swapaxes(1, 2)[rows])


@pytest.mark.parametrize(
    "kwargs",
    [
        {"use_gate": True, "use_bias": False},
        {"use_gate": True, "value_dim": 5, "output_shape": (2, 3)},
    ],
)
def test_weight_shapes(kwargs):
    theirs, ours = default_pair(**kwargs)
    for one, other in zip(ours.weights, theirs.weights, strict=True):
        assert one.shape == other.shape
        assert one.path.split("/")[1:] == other.path.split("/")[1:]
    output = values(ours(QUERY, VALUE, KEY))
    # On JAX, their fused path needs the same width for keys and values.
    expected, _ = theirs(QUERY, VALUE, KEY, return_attention_scores=True)
    assert_close(output, values(expected))


@pytest.mark.parametrize("name", ["value mask", "causal"])
def test_gradients(name):
    kwargs, call_kwargs, _ = CALLS[name]
    upstream = normal(B, T, D, seed=5)
    of_layers = []
    for layer in default_pair(**kwargs):

        def loss(query, value, key, layer=layer):
            output = layer(query, value, key, **call_kwargs)
            return ops.sum(ops.multiply(output, upstream))

        of_layers.append(gradient(loss, QUERY, VALUE, KEY))
    for theirs, ours in zip(*of_layers, strict=True):
        assert_close(ours, theirs)


def test_implicit_masks():
    theirs, ours = default_pair()

    def masked(layer):
        query, value, key = (
            attach_mask(ops.convert_to_tensor(array), mask)
            for array, mask in (
                (QUERY, QUERY_MASK),
                (VALUE, HOLES),
                (KEY, RIGHT),
            )
        )
        return values(layer(query, value, key))

    output, expected = masked(ours), masked(theirs)
    assert_close(output[QUERY_MASK], expected[QUERY_MASK])
    unmasked = values(ours(QUERY, VALUE, KEY))
    assert_differs(output[QUERY_MASK], unmasked[QUERY_MASK])


X4 = normal(2, 3, 4, 6, seed=7)
every_axes = pytest.mark.parametrize("axes", [(1,), (1, 2), (-2,)])


@every_axes
def test_attention_axes(axes):
    theirs, ours = pair(X4.shape, X4.shape, attention_axes=axes)
    output, weights = ours(X4, X4, return_attention_scores=True)
    expected, expected_weights = theirs(X4, X4, return_attention_scores=True)
    assert_close(values(output), values(expected))
    assert_close(values(weights), values(expected_weights))
    assert ours.attention_axes == theirs.attention_axes


@every_axes
def test_attention_axes_with_a_mask(axes):
    theirs, ours = pair(X4.shape, X4.shape, attention_axes=axes)
    axes = theirs.attention_axes
    others = [X4.shape[axis] for axis in range(3) if axis not in axes]
    lengths = [X4.shape[axis] for axis in axes]
    mask = RANDOM.random((*others, *lengths, *lengths)) < 0.7
    # The first key is visible to all queries.
    mask[(..., *[0] * len(axes))] = True
    output, weights = ours(
        X4, X4, attention_mask=mask, return_attention_scores=True
    )
    expected, expected_weights = theirs(
        X4,
        X4,
        attention_mask=np.expand_dims(mask, len(others)),
        return_attention_scores=True,
    )
    assert_close(values(output), values(expected))
    assert_close(values(weights), values(expected_weights))
    assert_differs(values(output), values(ours(X4, X4)))


def test_attention_axes_of_different_lengths():
    query, value = normal(2, 3, 4, 6), normal(2, 5, 4, 6, seed=1)
    theirs, ours = pair(query.shape, value.shape, attention_axes=1)
    output, weights = ours(query, value, return_attention_scores=True)
    expected, expected_weights = theirs(
        query, value, return_attention_scores=True
    )
    assert_close(values(output), values(expected))
    assert_close(values(weights), values(expected_weights))
    symbolic, weights = ours(
        keras.Input(query.shape[1:]),
        keras.Input(value.shape[1:]),
        return_attention_scores=True,
    )
    assert symbolic.shape == (None, 3, 4, 6)
    assert weights.shape == (None, 4, N, 3, 5)


def test_regularizers():
    kwargs = dict.fromkeys(
        ["kernel_regularizer", "bias_regularizer", "activity_regularizer"],
        "l2",
    )
    totals = []
    for layer in default_pair(**kwargs):
        layer(QUERY, VALUE, KEY)
        totals.append(sum(float(ops.stop_gradient(x)) for x in layer.losses))
        assert len(layer.losses) == 12
    np.testing.assert_allclose(*totals, rtol=1e-5)


@pytest.mark.parametrize("use_gate", [False, True])
def test_weight_files_are_compatible(tmp_path, use_gate):
    """Weight files of models load in both directions."""
    models = []
    for layer in default_pair(use_gate=use_gate):
        inputs = [keras.Input(x.shape[1:]) for x in (QUERY, VALUE, KEY)]
        models.append(keras.Model(inputs, layer(*inputs)))
    theirs, ours = models
    arrays = [ops.convert_to_tensor(x) for x in (QUERY, VALUE, KEY)]
    expected = values(theirs(arrays))
    randomize(ours, seed=8)
    assert_differs(values(ours(arrays)), expected)
    theirs.save_weights(tmp_path / "theirs.weights.h5")
    ours.load_weights(tmp_path / "theirs.weights.h5")
    assert_close(values(ours(arrays)), expected)
    ours.save_weights(tmp_path / "ours.weights.h5")
    randomize(theirs, seed=8)
    theirs.load_weights(tmp_path / "ours.weights.h5")
    assert_close(values(theirs(arrays)), expected)


def test_config_is_compatible():
    """Our layer accepts the config of Keras's layer."""
    theirs, _ = default_pair(sliding_window=2, dropout=0.2, seed=3)
    config = theirs.get_config()
    # The dtype policies are different objects with the same name.
    ours = keras_attn.layers.MultiHeadAttention.from_config(config)
    for name, value in config.items():
        if name != "dtype":
            assert ours.get_config()[name] == value
