"""PositionalEmbedding compared with float64 sinusoids and table rows."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import PositionalEmbedding
from tests.helpers import reference
from tests.helpers.contract import attach_mask, check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

pytestmark = pytest.mark.every_backend

X = normal(2, 5, 6, seed=1)
MASK = np.array([[0, 0, 1, 1, 1], [1, 1, 0, 1, 0]], "bool")
COUNTED = np.int32([[-1, -1, 0, 1, 2], [0, 1, -1, 2, -1]])
ARBITRARY = np.int32([[7, 3, 0, -1, 1], [2, 2, 2, 5, 4]])


def learned(max_sequence_length=8, **kwargs):
    layer = PositionalEmbedding(
        "learned", max_sequence_length=max_sequence_length, **kwargs
    )
    layer.build(X.shape)
    return randomize(layer)


def encoding_of(layer, positions):
    """Returns the expected embedding of the positions."""
    if layer.kind == "sinusoidal":
        return reference.sinusoid(positions, 6, layer.layout)
    (table,) = layer.get_weights()
    token_mask = (positions >= 0)[..., None]
    return np.where(token_mask, table[np.maximum(positions, 0)], 0)


every_kind = pytest.mark.parametrize(
    "make",
    [
        PositionalEmbedding,
        functools.partial(PositionalEmbedding, layout="halves"),
        learned,
    ],
)


@every_kind
def test_adds_positions(make):
    layer = make()
    output = values(layer(X))
    indices = np.tile(np.arange(5), (2, 1))
    assert_close(output, X + encoding_of(layer, indices), 1e-6)
    assert_differs(output, X + encoding_of(layer, indices + 1))


@every_kind
def test_explicit_positions(make):
    layer = make()
    output = values(layer(X, positions=ARBITRARY))
    assert_close(output, X + encoding_of(layer, ARBITRARY), 1e-6)
    # Explicit positions override a mask.
    again = values(layer(X, positions=ARBITRARY, mask=MASK))
    assert_close(again, output, 0)


@every_kind
@pytest.mark.parametrize("implicit", [False, True])
def test_padding_is_not_counted(make, implicit):
    layer = make()
    if implicit:
        x = attach_mask(ops.convert_to_tensor(X), MASK)
        mask = x._keras_mask
        output = layer(x)
        assert x._keras_mask is mask
        np.testing.assert_array_equal(values(output._keras_mask), MASK)
    else:
        output = layer(X, mask=MASK)
    assert_close(values(output), X + encoding_of(layer, COUNTED), 1e-6)
    # Padding gets no positional embedding.
    assert_close(values(output)[~MASK], X[~MASK], 0)


@every_kind
def test_left_padding_does_not_change_outputs(make):
    layer = make()
    padded = values(layer(X, mask=MASK))
    alone = values(layer(X[:1, 2:]))
    assert_close(padded[:1, 2:], alone, 1e-6)


def test_layouts_permute_the_same_columns():
    x = np.zeros((1, 9, 6), "float32")
    pairs = values(PositionalEmbedding()(x))
    halves = values(PositionalEmbedding(layout="halves")(x))
    assert_close(pairs[..., [0, 2, 4, 1, 3, 5]], halves, 0)
    assert_differs(pairs, halves)


def test_positions_are_distinct_in_bfloat16():
    """All vectors are distinct, and exact up to one rounding."""
    x = np.zeros((1, 1001, 64), "float32")
    layer = PositionalEmbedding(dtype="mixed_bfloat16")
    output = layer(x)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    exact = PositionalEmbedding(dtype="float32")(x)
    rounded = ops.cast(exact, "bfloat16")
    np.testing.assert_array_equal(values(output), values(rounded))
    assert_close(
        values(exact), reference.sinusoid(np.arange(1001)[None], 64), 1e-6
    )
    rows = {row.tobytes() for row in values(output)[0]}
    assert len(rows) == 1001


def test_the_sum_is_rounded_once():
    x = ops.cast(normal(1, 300, 6, seed=2), "bfloat16")
    output = PositionalEmbedding(dtype="bfloat16")(x)
    exact = ops.cast(x, "float32") + ops.convert_to_tensor(
        np.float32(reference.sinusoid(np.arange(300)[None], 6))
    )
    np.testing.assert_array_equal(
        values(output), values(ops.cast(exact, "bfloat16"))
    )


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_gradients(kind):
    layer = learned() if kind == "learned" else PositionalEmbedding()
    if kind == "sinusoidal":
        layer.build(X.shape)
    upstream = normal(*X.shape, seed=3)

    def loss(x):
        return weighted_sum(layer(x, positions=ARBITRARY), upstream)

    (at_input,), at_weights = layer_gradients(layer, loss, X)
    assert_close(at_input, upstream, 1e-6)
    if kind == "learned":
        expected = np.zeros((8, 6))
        for b, t in np.ndindex(*ARBITRARY.shape):
            if ARBITRARY[b, t] >= 0:
                expected[ARBITRARY[b, t]] += upstream[b, t]
        (at_table,) = at_weights.values()
        assert_close(at_table, expected)


def test_positions_past_the_table_raise():
    layer = learned(max_sequence_length=5)
    layer(X)
    longer = normal(2, 6, 6)
    with pytest.raises(
        ValueError, match=r"max_sequence_length=5 rows.* 6 tokens"
    ):
        layer(longer)
    outside = np.int32([[0, 1, 2, 3, 5]] * 2)
    with pytest.raises(
        ValueError, match=r"`positions` must be less than max_sequence_length=5"
    ):
        layer(X, positions=outside)


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="runs eagerly on PyTorch"
)
def test_positions_past_the_table_are_nan_when_compiled():
    layer = learned(max_sequence_length=5)
    x, positions = keras.Input((5, 6)), keras.Input((5,), dtype="int32")
    model = keras.Model((x, positions), layer(x, positions=positions))
    position_ids = np.int32([[4, 5, -1, 0, 99]] * 2)
    output = model.predict_on_batch((X, position_ids))
    assert np.isnan(output[:, [1, 4]]).all()
    inside = [0, 2, 3]
    expected = X[:, inside] + encoding_of(layer, position_ids[:, inside])
    assert_close(output[:, inside], expected, 1e-6)


def test_large_sinusoidal_positions():
    x = np.zeros((1, 1, 6), "float32")
    positions = np.int32([[100_000]])
    output = values(PositionalEmbedding()(x, positions=positions))
    assert_close(output, reference.sinusoid(positions, 6), 1e-6)


@pytest.mark.parametrize(
    ("make", "trains"),
    [
        (functools.partial(PositionalEmbedding, layout="halves"), False),
        (
            functools.partial(
                PositionalEmbedding, "learned", max_sequence_length=6
            ),
            True,
        ),
    ],
)
def test_contract(make, trains):
    check_layer(make, X, trains=trains)


def test_config_contains_every_argument():
    arguments = {
        "kind": "learned",
        "layout": "halves",
        "max_sequence_length": 6,
    }
    layer = PositionalEmbedding(**arguments, initializer="ones")
    config = PositionalEmbedding.from_config(layer.get_config()).get_config()
    for name, value in arguments.items():
        assert config[name] == value
    assert config["initializer"] == layer.get_config()["initializer"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "rotary"}, "`kind` must be one of"),
        ({"layout": "quarters"}, "`layout` must be one of"),
        ({"kind": "learned"}, "`max_sequence_length` must be given"),
        (
            {"kind": "learned", "max_sequence_length": 0},
            "`max_sequence_length` must be a pos",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        PositionalEmbedding(**arguments)


def test_odd_width_raises():
    with pytest.raises(ValueError, match="even width"):
        PositionalEmbedding()(normal(2, 3, 5))


@every_kind
def test_invalid_inputs_raise(make):
    layer = make()
    layer(X)
    with pytest.raises(ValueError, match="`inputs` must have rank 3"):
        layer(X[0])
    with pytest.raises(ValueError, match="`inputs` must have 6 features"):
        layer(X[..., :4])
    with pytest.raises(ValueError, match="`positions` must hold integers"):
        layer(X, positions=np.zeros((2, 5), "float32"))
