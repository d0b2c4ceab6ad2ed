"""Keras features on complete models: LoRA, quantization, mixed precision."""

import keras
import numpy as np
import pytest

from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import TokenEmbedding
from keras_attn.training import SequenceCrossentropy
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import normal
from tests.helpers.tiny_models import LABELS, SOURCE, TARGET, tiny_transformer
from tests.helpers.weight_gradients import layer_gradients, weighted_sum


def stack(**kwargs):
    """Returns a functional model of an encoder and a decoder block."""
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    memory = TokenEmbedding(11, 8)(source)
    memory = EncoderBlock(
        num_heads=2, intermediate_dim=12, name="encoder", **kwargs
    )(memory)
    x = TokenEmbedding(11, 8)(target)
    x = DecoderBlock(
        num_heads=2, intermediate_dim=12, name="decoder", **kwargs
    )(x, memory)
    logits = keras.layers.Dense(11, name="logits")(x)
    model = keras.Model((source, target), logits)
    return randomize(model)


every_model = pytest.mark.parametrize(
    "make", [tiny_transformer, *once([stack])]
)


def outputs(model):
    return to_numpy(model((SOURCE, TARGET)))


def projections(model):
    """Returns the attention projections and dense layers of a model."""
    kinds = keras.layers.EinsumDense, keras.layers.Dense
    return [x for x in model._flatten_layers() if isinstance(x, kinds)]


def ignore_quantization_warnings(test):
    """Ignores two warnings that Keras raises for its own layers too."""
    for message in (
        "Layer .* does not have a `quantize` method",
        # From Keras's quantized embedding on PyTorch.
        r"[\s\S]*The use of `x.T` on tensors",
    ):
        test = pytest.mark.filterwarnings(f"ignore:{message}")(test)
    return test


@ignore_quantization_warnings
@every_model
def test_int8_quantization(make):
    model = make()
    before = outputs(model)
    model.quantize("int8")
    quantized = outputs(model)
    assert not np.array_equal(before, quantized)
    assert np.abs(before - quantized).max() < 0.1 * np.abs(before).max()
    for layer in projections(model):
        dtype = keras.backend.standardize_dtype(layer._kernel.dtype)
        assert dtype == "int8", layer.path


@ignore_quantization_warnings
@every_model
def test_int8_file_round_trip(make, tmp_path):
    model = make()
    model.quantize("int8")
    quantized = outputs(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(outputs(loaded), quantized, atol=1e-5)
    for layer in projections(loaded):
        dtype = keras.backend.standardize_dtype(layer._kernel.dtype)
        assert dtype == "int8", layer.path


@every_model
def test_lora_training_and_file_round_trip(make, tmp_path):
    model = make()
    base = [(layer, to_numpy(layer.kernel)) for layer in projections(model)]
    for layer, _ in base:
        layer.enable_lora(2)
    model.compile(keras.optimizers.Adam(0.05), SequenceCrossentropy())
    losses = model.fit((SOURCE, TARGET), LABELS, epochs=4, verbose=0).history[
        "loss"
    ]
    assert losses[-1] < losses[0]
    for layer, kernel in base:
        # Only the LoRA matrices are trained.
        np.testing.assert_array_equal(to_numpy(layer._kernel), kernel)
        assert not np.array_equal(to_numpy(layer.kernel), kernel), layer.path
    expected = outputs(model)
    model.save_weights(tmp_path / "model.weights.h5")
    # Loading into a model without LoRA merges the adapters into its kernels.
    plain = make()
    plain.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(outputs(plain), expected, atol=1e-5, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(outputs(loaded), expected, atol=1e-5, rtol=1e-5)


def with_adapters(make, mode):
    """Returns a model with nonzero adapters at its projections."""
    model = make()
    if mode is not None:
        model.quantize(mode)
    for number, layer in enumerate(projections(model)):
        layer.enable_lora(2)
        for offset, weight in enumerate(
            (layer.lora_kernel_a, layer.lora_kernel_b)
        ):
            draw = normal(*weight.shape, seed=2 * number + offset)
            weight.assign(0.3 * draw)
    return model


@ignore_quantization_warnings
@pytest.mark.parametrize(
    "make, mode",
    [
        (tiny_transformer, "int8"),
        *once([(stack, "int8"), (tiny_transformer, "int4")]),
    ],
)
def test_adapters_of_quantized_weights_learn(make, mode):
    exact, model = with_adapters(make, None), with_adapters(make, mode)
    upstream = normal(*outputs(exact).shape, seed=3)
    (_, expected), (_, gradients) = (
        layer_gradients(
            x, lambda x=x: weighted_sum(x((SOURCE, TARGET)), upstream)
        )
        for x in (exact, model)
    )
    lora = [name for name in gradients if "lora_" in name]
    assert len(lora) == 2 * len(projections(model))
    found, expected = (
        np.concatenate([x[name].ravel() for name in lora])
        for x in (gradients, expected)
    )
    # Only rounding. Unrelated gradients have an error of about 1.
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < {"int8": 0.1, "int4": 0.5}[mode]
    model.compile(keras.optimizers.Adam(0.05), SequenceCrossentropy())
    losses = model.fit((SOURCE, TARGET), LABELS, epochs=4, verbose=0)
    assert losses.history["loss"][-1] < losses.history["loss"][0]


@ignore_quantization_warnings
@every_model
def test_a_file_of_quantized_weights_with_adapters_is_refused(make, tmp_path):
    """Keras would round the sum of a kernel and its adapters again."""
    model = with_adapters(make, "int8")
    expected = outputs(model)
    for save, name in (
        (model.save, "model.keras"),
        (model.save_weights, "model.weights.h5"),
    ):
        path = tmp_path / name
        path.write_bytes(b"an older file")
        with pytest.raises(ValueError, match="both quantized and trained with"):
            save(path)
        if make is tiny_transformer:
            assert path.read_bytes() == b"an older file"
    # The way out that the message names.
    restored = with_adapters(make, "int8")
    restored.set_weights([np.zeros_like(w) for w in model.get_weights()])
    restored.set_weights(model.get_weights())
    np.testing.assert_array_equal(outputs(restored), expected)


@pytest.mark.parametrize(
    "make, policy",
    [
        (stack, "mixed_float16"),
        (tiny_transformer, "mixed_bfloat16"),
        *once([(stack, "mixed_bfloat16"), (tiny_transformer, "mixed_float16")]),
    ],
)
def test_mixed_precision_with_fully_padded_rows(make, policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = make(dropout=0.1)
    finally:
        keras.config.set_dtype_policy(before)
    source, target, labels = (
        np.concatenate([x, np.zeros_like(x[:1])])
        for x in (SOURCE, TARGET, LABELS)
    )
    # One row without a source and one without a target.
    more = np.concatenate([source[:1] * 0, source[:1]])
    source = np.concatenate([source, more])
    target = np.concatenate([target, target[:1], target[:1] * 0])
    labels = np.concatenate([labels, labels[:1], labels[:1] * 0])
    weights = [to_numpy(v) for v in model.trainable_variables]
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy())
    losses = model.fit(
        (source, target), labels, epochs=5, shuffle=False, verbose=0
    ).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
    after = [to_numpy(v) for v in model.trainable_variables]
    assert all(np.isfinite(x).all() for x in after)
    changed = [
        not np.array_equal(x, y) for x, y in zip(weights, after, strict=True)
    ]
    assert sum(changed) > 0.8 * len(changed)
