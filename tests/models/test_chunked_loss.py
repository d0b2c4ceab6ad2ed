"""`fit` and `evaluate` of models that never hold all logits."""

import importlib

import keras
import numpy as np
import pytest

from keras_attn import models
from keras_attn.models import chunked_loss
from keras_attn.training import Perplexity, SequenceCrossentropy, TokenAccuracy
from tests.helpers.cases import once

RNG = np.random.default_rng(0)
SIZE, ROWS, LENGTH = 11, 4, 6
IDS = RNG.integers(3, SIZE, (ROWS, LENGTH)).astype("int32")
LABELS = np.roll(IDS, -1, axis=1)
LABELS[1, 3:] = LABELS[2, 5] = 0
IDS[1, 4:] = 0
WEIGHTS = RNG.uniform(0.5, 2, (ROWS, LENGTH)).astype("float32")
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.0,
}


def gpt(**options):
    return models.GPT(SIZE, max_sequence_length=8, **SIZES, **options)


def regularized():
    model = gpt(tie_word_embeddings=False)
    model._output_dense._kernel.regularizer = keras.regularizers.L2(0.1)
    return model


# Name: model, inputs.
MODELS = {
    "GPT": (gpt, IDS),
    "GPT, untied": (regularized, IDS),
    "Transformer": (
        lambda: models.Transformer(SIZE, output_bias=True, **SIZES),
        (IDS, IDS),
    ),
    "TransformerXL": (
        lambda: models.TransformerXL(SIZE, memory_length=2, **SIZES),
        IDS,
    ),
    "XLNet": (
        lambda: models.XLNet(SIZE, **SIZES),
        {
            "token_ids": IDS,
            "order": np.tile(np.int32([2, 0, 1, 4, 3, 5]), (ROWS, 1)),
            "target_positions": np.tile(np.arange(LENGTH), (ROWS, 1)),
        },
    ),
}
LOSSES = {
    "plain": {},
    "smoothed": {"label_smoothing": 0.1, "class_weight": {4: 0.5, 5: 0.0}},
    "sum": {"reduction": "sum", "class_weight": {4: 0.5, 5: 0.0}},
    "weighted": {"reduction": "mean_with_sample_weight"},
}


@pytest.fixture
def chunks(monkeypatch):
    """Counts the losses of hidden states, which have small chunks."""
    calls = []
    module = importlib.import_module("keras_attn.backend.linear_nll")
    monkeypatch.setattr(module, "CHUNK", 5)
    method = SequenceCrossentropy.of_hidden_states

    def counted(self, *args):
        calls.append(args)
        return method(self, *args)

    monkeypatch.setattr(SequenceCrossentropy, "of_hidden_states", counted)
    return calls


def outcomes(make, inputs, loss, least, weighted, monkeypatch):
    """Returns what `fit` and `evaluate` report, and the weights after them."""
    monkeypatch.setattr(chunked_loss, "LEAST_VOCABULARY", least)
    keras.utils.set_random_seed(0)
    model = make()
    # Large steps would amplify rounding; a batch has two rows.
    tokens = 2 * LENGTH if loss.get("reduction") == "sum" else 1
    model.compile(
        keras.optimizers.SGD(0.1 / tokens, momentum=0.9),
        SequenceCrossentropy(**loss),
        metrics=[TokenAccuracy(), Perplexity()],
        weighted_metrics=[Perplexity(name="weighted")] if weighted else None,
    )
    weight = WEIGHTS if weighted else None
    fitted = model.fit(inputs, LABELS, 2, 2, 0, sample_weight=weight).history
    evaluated = model.evaluate(
        inputs, LABELS, 2, 0, sample_weight=weight, return_dict=True
    )
    predicted = model.predict(inputs, verbose=0)
    assert predicted.shape == (ROWS, LENGTH, SIZE)
    return fitted, evaluated, model.get_weights()


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "model, loss, weighted",
    [
        ("GPT", "smoothed", True),
        *once(
            [
                ("GPT, untied", "plain", False),
                ("Transformer", "sum", True),
                ("TransformerXL", "plain", True),
                ("XLNet", "weighted", True),
            ]
        ),
    ],
)
def test_training_equals_that_with_all_logits(
    model, loss, weighted, chunks, monkeypatch
):
    expected = outcomes(
        *MODELS[model], LOSSES[loss], SIZE + 1, weighted, monkeypatch
    )
    assert not chunks
    found = outcomes(*MODELS[model], LOSSES[loss], SIZE, weighted, monkeypatch)
    assert chunks
    for one, two in zip(found[:2], expected[:2], strict=True):
        assert one.keys() == two.keys()
        for name, value in two.items():
            np.testing.assert_allclose(one[name], value, 1e-5, 1e-6)
    for one, two in zip(found[2], expected[2], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


class Cooled(models.GPT):
    """Divides its logits by two."""

    def call(self, inputs, training=None):
        return super().call(inputs, training=training) / 2


def loss_of_zeros(y_true, y_pred):
    return keras.ops.mean(y_pred)


@pytest.mark.parametrize(
    "make, options",
    [
        (gpt, {"loss": loss_of_zeros}),
        (gpt, {"metrics": [TokenAccuracy(pad_id=-1)]}),
        (gpt, {"metrics": ["accuracy"]}),
        (gpt, {"weighted_metrics": ["accuracy"]}),
        (gpt, {"loss_weights": [2.0]}),
        (
            lambda: Cooled(SIZE, max_sequence_length=8, **SIZES),
            {"metrics": [TokenAccuracy()]},
        ),
    ],
)
def test_what_needs_logits_gets_them(make, options, chunks, monkeypatch):
    monkeypatch.setattr(chunked_loss, "LEAST_VOCABULARY", SIZE)
    model = make()
    model.compile("sgd", **{"loss": SequenceCrossentropy(), **options})
    history = model.fit(IDS, LABELS, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert not chunks


def test_padding_and_unknown_labels(chunks, monkeypatch):
    """NaN at padding changes nothing; a label outside the vocabulary does."""
    monkeypatch.setattr(chunked_loss, "LEAST_VOCABULARY", SIZE)
    model = gpt()
    model.compile("sgd", SequenceCrossentropy(), metrics=[Perplexity()])
    before = model.get_weights()
    found = model.evaluate(IDS, np.full_like(LABELS, SIZE), verbose=0)
    assert np.isnan(found).all()
    model.fit(IDS, np.zeros_like(LABELS), verbose=0)
    for one, two in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(dtype, chunks, monkeypatch):
    losses = []
    for least in (SIZE + 1, SIZE):
        monkeypatch.setattr(chunked_loss, "LEAST_VOCABULARY", least)
        keras.utils.set_random_seed(0)
        model = gpt(dtype=dtype)
        model.compile("sgd", SequenceCrossentropy(), metrics=[Perplexity()])
        history = model.fit(IDS, LABELS, epochs=3, verbose=0).history
        losses.append([history["loss"], history["perplexity"]])
    assert chunks
    np.testing.assert_allclose(*losses, rtol=1e-2)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_quantized_and_adapted_output_layers(chunks, monkeypatch):
    monkeypatch.setattr(chunked_loss, "LEAST_VOCABULARY", SIZE)
    model = gpt(tie_word_embeddings=False)
    model._output_dense.enable_lora(2)
    model.compile("sgd", SequenceCrossentropy())
    kernel = np.array(model._output_dense._kernel)
    adapter = np.array(model._output_dense.lora_kernel_b)
    model.fit(IDS, LABELS, verbose=0)
    assert chunks
    np.testing.assert_array_equal(model._output_dense._kernel, kernel)
    assert (np.array(model._output_dense.lora_kernel_b) != adapter).any()
    chunks.clear()
    quantized = gpt()
    quantized.quantize("int8")
    quantized.compile("sgd", SequenceCrossentropy())
    quantized.evaluate(IDS, LABELS, verbose=0)
    assert not chunks


def test_a_loaded_model_is_compiled(chunks, monkeypatch, tmp_path):
    monkeypatch.setattr(chunked_loss, "LEAST_VOCABULARY", SIZE)
    model = gpt()
    model.compile("adam", SequenceCrossentropy(), metrics=[Perplexity()])
    model.fit(IDS, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    chunks.clear()
    found, expected = (
        one.evaluate(IDS, LABELS, verbose=0) for one in (loaded, model)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(chunks) >= 1


def test_a_loss_without_reduction_has_no_sum():
    with pytest.raises(ValueError, match="`reduction` must not be None"):
        SequenceCrossentropy(reduction=None).of_hidden_states(
            LABELS, np.zeros((ROWS, LENGTH, 8), "float32"), None
        )
