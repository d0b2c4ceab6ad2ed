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
    model = models.Encoder(23, embedding_dim=4, intermediate_dim=24, **SIZES)
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
        assert nbytes(model) < 0.8 * size
    for path, layer in linear(model).items():
        assert layer.quantization_mode == mode or "block_" not in path
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


def test_layers_without_int8_are_named():
    model = models.RecurrentSeq2Seq(11, hidden_dim=8)
    named = r"LSTMCell\) has no mode"
    with pytest.raises(ValueError, match=f"mode='int8', but .*{named}"):
        model.quantize("int8")
    # The filter that the message shows.
    kinds = (*LINEAR, keras.layers.Embedding)
    model.quantize("int8", filters=lambda layer: isinstance(layer, kinds))
    assert {x.quantization_mode for x in linear(model).values()} == {"int8"}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "kind, mode",
    [
        (models.TransformerXL, "int8"),
        *once([(models.XLNet, "int4")]),
    ],
)
def test_distance_projections(kind, mode, tmp_path):
    """Outputs, cached steps, a saved file, and adapters of other layers."""
    sizes = SIZES | {"num_layers": 1}
    model = randomize(kind(23, memory_length=2, **sizes))
    before, size = to_numpy(model(IDS)), nbytes(model)
    model.quantize(mode)
    after = to_numpy(model(IDS))
    assert 0 < error(after, before) < MOST[mode]
    assert nbytes(model) < 0.5 * size
    positions = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, layers.TransformerXLPosition)
    ]
    assert [x.quantization_mode for x in positions] == [mode]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(to_numpy(loaded(IDS)), after, atol=1e-5)
    assert nbytes(loaded) == nbytes(model)
    found, expected = (
        x.generate(IDS[:2], max_new_tokens=2).tokens for x in (loaded, model)
    )
    np.testing.assert_array_equal(found, expected)
    enable_lora(model, 2)
    if kind is models.XLNet:
        # Its training needs an order of prediction; see the other model.
        return
    kernel = to_numpy(positions[0].kernel)
    model.compile(keras.optimizers.Adam(0.05), SequenceCrossentropy())
    losses = model.fit(IDS[:, :-1], IDS[:, 1:], epochs=3, verbose=0)
    assert losses.history["loss"][-1] < losses.history["loss"][0]
    np.testing.assert_array_equal(to_numpy(positions[0].kernel), kernel)


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


class OneLayer(models.GenerativeModel):
    """An embedding and a linear layer, the only block."""

    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(9, 6)
        self.dense = keras.layers.Dense(5)

    def call(self, ids):
        return self.dense(self.table(ids))

    def get_quantization_layer_structure(self, mode=None):
        return {
            "pre_block_layers": [self.table],
            "sequential_blocks": [self.dense],
        }


@pytest.mark.every_backend
@pytest.mark.parametrize("activation_order", [False, *once([True])])
def test_gptq_corrects_the_remaining_weights(activation_order):
    """Against a loop that inverts the Hessian of the rest at each column."""
    random = np.random.default_rng(1)
    ids = random.integers(0, 9, (1, 20))
    model = OneLayer()
    model(ids)
    # Inputs that depend on each other.
    table = random.normal(size=(9, 3)) @ random.normal(size=(3, 6))
    model.table._embeddings.assign(table + 0.1 * random.normal(size=(9, 6)))
    kernel = random.normal(size=(6, 5))
    # Their range does not include 0.
    kernel[:, :2] = np.abs(kernel[:, :2]) * [1, -1] + [0.5, -0.5]
    model.dense._kernel.assign(kernel)
    x = to_numpy(model.table(ids))[0].astype("float64")
    config = keras.quantizers.GPTQConfig(
        [ids.ravel()],
        tokenizer=len,
        num_samples=1,
        sequence_length=20,
        group_size=-1,
        activation_order=activation_order,
    )
    model.quantize(config=config)
    scale, zero = (
        to_numpy(w)[:, 0].astype("float64")
        for w in (model.dense.kernel_scale, model.dense.kernel_zero)
    )
    hessian = 2 * x.T @ x / len(x)
    hessian += 0.01 * np.diag(hessian).mean() * np.eye(6)
    order = np.arange(6)
    if activation_order:
        order = np.argsort(-np.diag(hessian), kind="stable")
    rest, rounded = kernel.T.copy(), np.zeros((5, 6))
    for step, column in enumerate(order):
        left = order[step:]
        inverse = np.linalg.inv(hessian[np.ix_(left, left)])
        steps = np.clip(np.rint(rest[:, column] / scale + zero), 0, 15)
        rounded[:, column] = (steps - zero) * scale
        wrong = (rest[:, column] - rounded[:, column]) / inverse[0, 0]
        rest[:, left] -= np.outer(wrong, inverse[0])
    found = to_numpy(model.dense(np.eye(6, dtype="float32")))
    np.testing.assert_allclose(found, rounded.T, rtol=1e-4, atol=1e-5)
    # Rounding alone, on the same grid, has a larger error.
    steps = np.clip(np.rint(kernel.T / scale[:, None] + zero[:, None]), 0, 15)
    nearest = ((steps - zero[:, None]) * scale[:, None]).T
    errors = [np.linalg.norm(x @ (w - kernel)) for w in (rounded.T, nearest)]
    assert errors[0] < errors[1]


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
