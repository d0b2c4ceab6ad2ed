"""`compute_output_spec` takes what `call` takes, by position too."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import blocks, layers, models

PUBLIC = {
    f"{package.__name__.rpartition('.')[2]}.{name}": getattr(package, name)
    for package in (layers, blocks, models)
    for name in package.__all__
    if inspect.isclass(getattr(package, name))
    and issubclass(getattr(package, name), keras.layers.Layer)
}
X = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
MASK = np.array([[True] * 4, [True, True, False, False]])
KEYS = np.array([[True, True, True, False], [True] * 4])
GRID = np.tril(np.ones((2, 4, 4), bool))


def parameters(function):
    return [
        (p.name, p.kind, p.default)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.one_backend
@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_match(name):
    """Without an own method, Keras calls `call` symbolically."""
    kind = PUBLIC[name]
    bases = keras.layers.Layer, keras.Model
    own = kind.compute_output_spec
    if own not in [base.compute_output_spec for base in bases]:
        assert parameters(own) == parameters(kind.call)


@pytest.mark.one_backend
def test_classes_with_a_method_of_their_own_are_tested():
    default = keras.layers.Layer.compute_output_spec
    own = {
        name
        for name, kind in PUBLIC.items()
        if kind.compute_output_spec is not default
    }
    assert {"layers.MultiHeadAttention", "layers.ScoredAttention"} <= own


def attention():
    return layers.MultiHeadAttention(2, 4)


# Name: layer, arguments by position.
CASES = {
    "MultiHeadAttention": (attention, (X, X, X, MASK, KEYS)),
    "MultiHeadAttention, all masks": (
        attention,
        (X, X, X, MASK, KEYS, MASK, GRID),
    ),
    "ScoredAttention": (
        layers.ScoredAttention,
        (X, X, X, MASK, KEYS, MASK, GRID),
    ),
    "PositionalEmbedding": (layers.PositionalEmbedding, (X, MASK)),
    "EncoderBlock": (
        lambda: blocks.EncoderBlock(num_heads=2, intermediate_dim=12),
        (X, MASK),
    ),
    "DecoderBlock": (
        lambda: blocks.DecoderBlock(num_heads=2, intermediate_dim=12),
        (X, X, MASK, KEYS),
    ),
    "SegmentBlock": (
        lambda: blocks.SegmentBlock(num_heads=2, intermediate_dim=12),
        (X, X, MASK, KEYS),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_masks_by_position_in_a_functional_model(name):
    make, args = CASES[name]
    layer = make()
    inputs = [keras.Input(x.shape[1:], dtype=x.dtype.name) for x in args]
    model = keras.Model(inputs, layer(*inputs))
    tensors = [ops.convert_to_tensor(x) for x in args]
    np.testing.assert_allclose(
        ops.convert_to_numpy(model(tensors)),
        ops.convert_to_numpy(layer(*tensors)),
        rtol=1e-5,
        atol=1e-6,
    )
