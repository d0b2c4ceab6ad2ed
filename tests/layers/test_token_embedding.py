"""TokenEmbedding compared with rows and products of its matrix."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import TokenEmbedding
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

pytestmark = pytest.mark.every_backend

IDS = np.int32([[3, 1, 0], [2, 0, 5]])


def make(**kwargs):
    layer = TokenEmbedding(7, 4, **kwargs)
    layer.build()
    return randomize(layer)


@pytest.mark.parametrize("scale", [True, False])
def test_looks_up_and_scales(scale):
    layer = make(scale=scale)
    (matrix,) = layer.get_weights()
    vectors = values(layer(IDS))
    assert_close(vectors, matrix[IDS] * (2.0 if scale else 1.0))
    assert_differs(vectors, matrix[IDS] * (1.0 if scale else 2.0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integer_dtypes(dtype):
    layer = make()
    assert_close(values(layer(IDS.astype(dtype))), values(layer(IDS)), 0)


@pytest.mark.parametrize("pad_id", [0, 3, -1])
def test_mask(pad_id):
    layer = make(pad_id=pad_id)
    mask = layer(IDS)._keras_mask
    np.testing.assert_array_equal(values(mask), pad_id != IDS)


def test_no_mask():
    assert getattr(make(pad_id=None)(IDS), "_keras_mask", None) is None


def test_logits_use_the_same_matrix():
    layer = make()
    (matrix,) = layer.get_weights()
    hidden = normal(2, 3, 4, seed=1)
    logits = values(layer.logits(ops.convert_to_tensor(hidden)))
    assert_close(logits, hidden @ matrix.T)
    assert len(layer.weights) == 1


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_logits_with_a_bias(dtype):
    layer = make(logits_bias=True, dtype=dtype)
    matrix, bias = sorted(layer.get_weights(), key=lambda w: -w.ndim)
    assert bias.shape == (7,)
    hidden = normal(2, 3, 4, seed=1)
    tensor = ops.convert_to_tensor(hidden, dtype=layer.compute_dtype)
    logits = layer.logits(tensor)
    assert logits.dtype == tensor.dtype
    tolerance = {"float32": 1e-5, "mixed_bfloat16": 2e-2}[dtype]
    assert_close(values(logits), hidden @ matrix.T + bias, tolerance)
    assert_differs(values(logits), hidden @ matrix.T)
    again = layer.logits(tensor, layer.output_matrix())
    assert again.dtype == tensor.dtype
    assert_close(values(again), values(logits), tolerance)


def test_quantized_layer_has_no_output_matrix():
    layer = make()
    layer._table.quantize("int8")
    assert layer.output_matrix() == ()


QUANTIZED = pytest.mark.parametrize("mode", ["int8", *once(["int4"])])


# From Keras's quantized embedding on PyTorch.
@pytest.mark.filterwarnings(r"ignore:[\s\S]*The use of `x.T` on tensors")
@QUANTIZED
def test_logits_of_quantized_weights_have_a_gradient(mode):
    layer = make()
    layer._table.quantize(mode)
    matrix = values(layer._table(np.arange(7)))
    hidden, upstream = normal(2, 3, 4, seed=1), normal(2, 3, 7, seed=2)
    (found,), _ = layer_gradients(
        layer, lambda x: weighted_sum(layer.logits(x), upstream), hidden
    )
    assert_close(found, upstream @ matrix)


@pytest.mark.filterwarnings(r"ignore:[\s\S]*The use of `x.T` on tensors")
@QUANTIZED
def test_logits_of_quantized_weights_use_adapters(mode):
    layer = make()
    layer._table.quantize(mode)
    base = values(layer._table(np.arange(7)))
    layer._table.enable_lora(2)
    a, b = layer._table.lora_embeddings_a, layer._table.lora_embeddings_b
    b.assign(normal(*b.shape, seed=3))
    matrix = base + to_numpy(a) @ to_numpy(b)
    assert_close(values(layer(IDS)), 2 * matrix[IDS])
    hidden, upstream = normal(2, 3, 4, seed=1), normal(2, 3, 7, seed=2)
    logits = values(layer.logits(ops.convert_to_tensor(hidden)))
    assert_close(logits, hidden @ matrix.T)
    (found,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer.logits(x), upstream), hidden
    )
    assert_close(found, upstream @ matrix)
    at_matrix = np.einsum("btv,btd->vd", upstream, hidden)
    by_name = {name.split("/")[-1]: g for name, g in at_weights.items()}
    assert_close(by_name["lora_embeddings_a"], at_matrix @ to_numpy(b).T)
    assert_close(by_name["lora_embeddings_b"], to_numpy(a).T @ at_matrix)


def test_logits_of_masked_vectors():
    layer = make()
    vectors = layer(IDS)
    (matrix,) = layer.get_weights()
    assert_close(values(layer.logits(vectors)), 2 * matrix[IDS] @ matrix.T)


def test_gradient_of_the_tied_matrix():
    """Both factors of sum(U * E[x] E^T sqrt(D)) contribute."""
    layer = make()
    upstream = normal(2, 3, 7, seed=1)
    _, gradients = layer_gradients(
        layer, lambda: weighted_sum(layer.logits(layer(IDS)), upstream)
    )
    (matrix,) = layer.get_weights()
    expected = np.einsum("btv,btd->vd", upstream, 2 * matrix[IDS])
    for b, t in np.ndindex(*IDS.shape):
        expected[IDS[b, t]] += 2 * upstream[b, t] @ matrix
    (gradient,) = gradients.values()
    assert_close(gradient, expected)


def test_scaled_vectors_have_unit_variance():
    layer = TokenEmbedding(200, 64)
    vectors = values(layer(np.arange(200)[None]))
    assert vectors.std() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(dtype):
    layer = make(dtype=f"mixed_{dtype}")
    vectors = layer(IDS)
    (matrix,) = layer.get_weights()
    assert keras.backend.standardize_dtype(vectors.dtype) == dtype
    assert_close(values(vectors), 2 * matrix[IDS], 1e-2)
    logits = layer.logits(vectors)
    assert_close(values(logits), 2 * matrix[IDS] @ matrix.T, 5e-2)


def test_contract():
    check_layer(
        functools.partial(TokenEmbedding, 7, 4, pad_id=None), IDS, masks=False
    )


def test_mask_in_a_functional_model():
    inputs = keras.Input((None,), dtype="int32")
    layer = make()
    vectors = layer(inputs)
    assert vectors.shape == (None, None, 4)
    pooled = keras.layers.GlobalAveragePooling1D()(vectors)
    output = values(keras.Model(inputs, pooled)(IDS))
    (matrix,) = layer.get_weights()
    assert_close(output[0], 2 * matrix[[3, 1]].mean(0))
    assert_close(output[1], 2 * matrix[[2, 5]].mean(0))


def test_config_contains_every_argument():
    arguments = {
        "vocabulary_size": 7,
        "hidden_dim": 4,
        "scale": False,
        "pad_id": 3,
        "logits_bias": True,
    }
    layer = TokenEmbedding(**arguments, initializer="ones")
    config = TokenEmbedding.from_config(layer.get_config()).get_config()
    for name, value in arguments.items():
        assert config[name] == value
    assert config["initializer"] == layer.get_config()["initializer"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be a positive"),
        ({"hidden_dim": 2.5}, "`hidden_dim` must be a positive"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(**{"vocabulary_size": 7, "hidden_dim": 4, **arguments})


@pytest.mark.parametrize("ids", [IDS + 0.5, IDS.astype("float16"), IDS > 0])
def test_non_integer_ids_raise(ids):
    with pytest.raises(ValueError, match="`token_ids` must hold integers"):
        make()(ids)


def test_invalid_width_raises():
    with pytest.raises(ValueError, match="`hidden` must have 4 features"):
        make().logits(ops.ones((2, 3, 5)))


@pytest.mark.parametrize("build", [True, *once([False])])
def test_first_layer_of_a_sequential_model(build):
    """Keras builds it with a float32 input and casts the ids to that."""
    layer = TokenEmbedding(3000, 4)
    model = keras.Sequential([layer, keras.layers.GlobalAveragePooling1D()])
    if build:
        model.build((None, 3))
    ids = np.int32([[5, 6, 0], [2999, 1, 2]])
    mean = keras.layers.GlobalAveragePooling1D()
    expected = values(mean(layer(ops.convert_to_tensor(ids))))
    np.testing.assert_array_equal(values(model(ids)), expected)
    np.testing.assert_allclose(
        model.predict(ids, verbose=0), expected, rtol=1e-5, atol=1e-6
    )
    model.compile("sgd", "mse")
    model.fit(ids, np.zeros((2, 4), "float32"), verbose=0)


def test_half_precision_would_round_the_ids_of_a_sequential_model():
    ids = np.int32([[5, 6, 0], [2999, 1, 2]])
    layer = TokenEmbedding(3000, 4, dtype="mixed_float16")
    with pytest.raises(ValueError, match=r"`token_ids`.*`keras\.Input\("):
        keras.Sequential([layer])(ids)
    model = keras.Sequential([keras.Input((3,), dtype="int32"), layer])
    expected = values(layer(ops.convert_to_tensor(ids)))
    np.testing.assert_array_equal(values(model(ids)), expected)
