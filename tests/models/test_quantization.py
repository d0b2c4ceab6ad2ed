"""Quantization modes of whole models, against rounded weights."""

import keras
import numpy as np
import pytest

from keras_attn import layers, models
from keras_attn.blocks import DecoderBlock
from keras_attn.training import SequenceCrossentropy, enable_lora
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
IDS = np.random.default_rng(0).integers(3, 23, (3, 8)).astype("int32")
LINEAR = keras.layers.Dense, keras.layers.EinsumDense
pytestmark = pytest.mark.filterwarnings(
    # From Keras's quantized embedding on PyTorch.
    r"ignore:[\s\S]*The use of `x.T` on tensors"
)


def gpt(**kwargs):
    model = models.GPT(23, max_sequence_length=12, **SIZES, **kwargs)
    return randomize(model)


def encoder():
    # Weights of three different widths.
    model = models.Encoder(
        23, num_segments=2, embedding_dim=4, intermediate_dim=24, **SIZES
    )
    return randomize(model)


def calibrated(mode, **kwargs):
    """Returns the config of a calibrated mode."""
    kind = {
        "gptq": keras.quantizers.GPTQConfig,
        "awq": keras.quantizers.AWQConfig,
    }[mode]
    options = {"num_samples": 4, "sequence_length": 8, "group_size": 4}
    return kind([IDS.ravel()], tokenizer=len, **(options | kwargs))


def linear(model):
    """Returns the linear layers of a model by path."""
    found = model._flatten_layers()
    return {layer.path: layer for layer in found if isinstance(layer, LINEAR)}


def options_of(mode):
    """Returns the arguments with which every model has a mode."""
    if mode in ("gptq", "awq"):
        return {"config": calibrated(mode)}
    if mode == "float8":
        return {"filters": lambda layer: isinstance(layer, LINEAR)}
    return {}


def error(found, expected):
    found, expected = to_numpy(found), to_numpy(expected)
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


# Rounding errors, from a first run; a wrong scale has an error of about 1.
MOST = {"int8": 0.05, "int4": 0.4, "float8": 0.1, "gptq": 0.3, "awq": 0.3}


@pytest.mark.every_backend
@pytest.mark.parametrize("mode", MOST)
@pytest.mark.parametrize("make", [gpt, *once([encoder])])
def test_outputs_file_and_decoding(make, mode, tmp_path):
    model = make()
    before, size = to_numpy(model(IDS)), nbytes(model)
    model.quantize(mode, **options_of(mode))
    after = to_numpy(model(IDS))
    assert 0 < error(after, before) < MOST[mode]
    if mode != "float8":
        assert nbytes(model) < 0.65 * size
    assert all(x.quantization_mode == mode for x in linear(model).values())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(to_numpy(loaded(IDS)), after, atol=1e-5)
    assert nbytes(loaded) == nbytes(model)
    if make is gpt:
        found, expected = (
            x.generate(IDS[:2], max_new_tokens=3).tokens
            for x in (loaded, model)
        )
        np.testing.assert_array_equal(found, expected)


def nbytes(model):
    return sum(to_numpy(weight).nbytes for weight in model.weights)


def test_a_mode_that_a_layer_lacks_changes_nothing():
    model = gpt()
    before = to_numpy(model(IDS))
    with pytest.raises(
        ValueError, match=r"'float8', but token_embedding/table .*int8 and int4"
    ):
        model.quantize("float8")
    np.testing.assert_array_equal(to_numpy(model(IDS)), before)
    assert not any(x.quantization_mode for x in linear(model).values())


@pytest.mark.parametrize(
    "make, named",
    [
        (lambda: models.TransformerXL(11, memory_length=2, **SIZES), "no mode"),
        *once(
            [
                (
                    lambda: models.XLNet(11, memory_length=2, **SIZES),
                    r"XLNetPosition\) has no mode",
                ),
                (
                    lambda: models.RecurrentSeq2Seq(11, hidden_dim=8),
                    r"LSTMCell\) has no mode",
                ),
            ]
        ),
    ],
)
def test_layers_without_int8_are_named(make, named):
    model = make()
    with pytest.raises(ValueError, match=f"mode='int8', but .*{named}"):
        model.quantize("int8")
    # The filter that the message shows.
    kinds = (*LINEAR, keras.layers.Embedding)
    model.quantize("int8", filters=lambda layer: isinstance(layer, kinds))
    assert {x.quantization_mode for x in linear(model).values()} == {"int8"}


@pytest.mark.parametrize("filters", ["^inner$", ["^inner$"]])
def test_filters_are_names_of_layers(filters):
    model = gpt()
    model.quantize("int8", filters=filters)
    found = {
        path.rpartition("/")[2]
        for path, layer in linear(model).items()
        if layer.quantization_mode
    }
    assert found == {"inner"}


def test_gptq_minimizes_the_error_of_activations():
    """Fails where calibration sees no activations: then it only rounds."""
    # Inputs of two directions: most errors of the weights do not matter.
    model = gpt(position_embedding=None)
    table = model._token_embedding._table
    basis = np.random.default_rng(1).normal(size=(23, 2, 8)).cumsum(0)
    table._embeddings.assign(basis[:, 0] * 0.1 + basis[:1, 1])
    expected, errors = to_numpy(model(IDS)), {}
    weights = model.get_weights()
    for name, config in {
        "gptq": calibrated("gptq", hessian_damping=0.01, weight_bits=3),
        # With this much damping, the activations hardly count.
        "rounded": calibrated("gptq", hessian_damping=1.0, weight_bits=3),
    }.items():
        model = gpt(position_embedding=None)
        model.set_weights(weights)
        model.quantize(config=config)
        errors[name] = error(model(IDS), expected)
    assert errors["gptq"] < 0.9 * errors["rounded"]


@pytest.mark.every_backend
def test_awq_scales_follow_the_activations():
    model = gpt()
    model.quantize("awq", config=calibrated("awq", num_grid_points=4))
    scales = [to_numpy(layer.awq_scales) for layer in linear(model).values()]
    # Without activations, all scales are 1.
    assert max(np.ptp(x) for x in scales) > 0.1


def test_the_head_of_an_encoder_is_calibrated_with_it():
    model = models.TokenClassifier(encoder(), num_classes=3)
    model.quantize("awq", config=calibrated("awq", num_grid_points=2))
    modes = {
        path: layer.quantization_mode for path, layer in linear(model).items()
    }
    assert "awq" in modes.values()
    # Not in a block.
    assert [path for path, mode in modes.items() if mode is None] == [
        path for path in modes if "block_" not in path
    ]


def test_models_and_layers_that_cannot_be_calibrated():
    model = models.Transformer(11, intermediate_dim=8, **SIZES)
    with pytest.raises(ValueError, match=r"for a Transformer.*'gptq'"):
        model.quantize("gptq", config=calibrated("gptq"))
    layer = layers.FeedForward(8, name="network")
    layer.build((None, None, 8))
    with pytest.raises(ValueError, match="'awq' for network"):
        layer.quantize("awq", config=calibrated("awq"))
    wide = models.GPT(23, num_layers=1, num_heads=2, hidden_dim=8, key_dim=16)
    with pytest.raises(ValueError, match=r"shape \(8, 2, 16\)"):
        wide.quantize("gptq", config=calibrated("gptq"))


def test_a_structure_in_the_config_is_not_saved(tmp_path):
    model = gpt()
    structure = model.get_quantization_layer_structure("gptq")
    config = calibrated("gptq", quantization_layer_structure=structure)
    model.quantize(config=config)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        to_numpy(loaded(IDS)), to_numpy(model(IDS)), atol=1e-5
    )


@pytest.mark.parametrize("mode", ["int8", *once(["int4", "float8"])])
def test_layers_quantize_their_sublayers(mode):
    x = np.random.default_rng(2).normal(size=(2, 5, 8)).astype("float32")
    block = DecoderBlock(num_heads=2, intermediate_dim=12)
    expected = to_numpy(block(x))
    block.quantize(mode)
    assert 0 < error(block(x), expected) < MOST[mode]
    embedding = layers.TokenEmbedding(23, 8)
    expected = to_numpy(embedding(IDS))
    if mode == "float8":
        with pytest.raises(ValueError, match=r"'float8', but .*table"):
            embedding.quantize(mode)
        return
    embedding.quantize(mode)
    assert 0 < error(embedding(IDS), expected) < MOST[mode]


@pytest.mark.every_backend
@pytest.mark.parametrize("mode", ["int8", *once(["int4"])])
def test_adapters_of_all_layers_learn(mode):
    """Gradients of adapters, of embeddings too, are those of float weights."""
    exact, model = gpt(), gpt()
    model.quantize(mode)
    for one in (exact, model):
        enable_lora(one, 2, pattern="/(table|query|value|inner)$")
        for number, weight in enumerate(one.trainable_weights):
            draw = np.random.default_rng(number).normal(size=weight.shape)
            weight.assign(0.3 * draw)
    upstream = np.random.default_rng(9).normal(size=(3, 8, 23))
    (_, expected), (_, found) = (
        layer_gradients(
            x, lambda x=x: weighted_sum(x(IDS), upstream.astype("float32"))
        )
        for x in (exact, model)
    )
    names = [name for name in found if "lora_" in name]
    assert any("table" in name for name in names)
    found, expected = (
        np.concatenate([x[name].ravel() for name in names])
        for x in (found, expected)
    )
    assert error(found, expected) < {"int8": 0.1, "int4": 0.5}[mode]
    model.compile(keras.optimizers.Adam(0.05), SequenceCrossentropy())
    losses = model.fit(IDS[:, :-1], IDS[:, 1:], epochs=3, verbose=0)
    assert losses.history["loss"][-1] < losses.history["loss"][0]


@pytest.mark.one_backend
@pytest.mark.parametrize("mode", ["gptq", "awq", "float8"])
def test_keras_has_no_adapters_in_these_modes(mode):
    """With Keras's layers alone; without the error, the guide is wrong."""
    dense = keras.layers.Dense(8)
    inputs = keras.Input((8,))
    block = keras.Sequential([inputs, dense])
    if mode == "float8":
        dense.quantize(mode)
    else:
        dense.quantize(mode, config=calibrated(mode))
        # As after calibration.
        del dense._kernel
        setattr(dense, f"is_{mode}_calibrated", True)
    with pytest.raises((NotImplementedError, AttributeError)):
        dense.enable_lora(2)
        block(np.ones((1, 8)))
