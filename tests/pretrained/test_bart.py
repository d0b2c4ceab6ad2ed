"""BART and mBART models against transformers: logits, searches, round trips."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import pretrained
from keras_attn.layers import RotaryPosition, T5Position
from keras_attn.models import Transformer
from tests.helpers.cases import once
from tests.pretrained import hugging_face

torch = pytest.importorskip("torch")

import transformers

# As published: targets of BART start with the end id.
SIZE, FIRST, PAD, END = 17, 0, 1, 2
SOURCE = np.array([[FIRST, 6, 7, 8, END], [FIRST, 4, END, PAD, PAD]], "int32")
TARGET = np.array([[END, 9, 4, 3], [END, 7, PAD, PAD]], "int32")
TOKEN_MASK = np.array([[True] * 4, [True, True, False, False]])
CONFIG = {
    "vocab_size": SIZE,
    "d_model": 8,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 10,
    "max_position_embeddings": 16,
    "pad_token_id": PAD,
    "decoder_start_token_id": END,
    "eos_token_id": END,
    "forced_eos_token_id": None,
}
FORMS = {
    "bart": {},
    "mbart": {"kind": "MBart", "scale_embedding": True},
    "another start": {"kind": "MBart", "decoder_start_token_id": 5},
    "without a bias": {"biased": False, "activation_function": "relu"},
    "of a bare model": {"bare": True},
}
CLASSES = {
    "Bart": transformers.BartForConditionalGeneration,
    "MBart": transformers.MBartForConditionalGeneration,
}


def make(folder, kind="Bart", biased=True, bare=False, **config):
    """Saves a model with random weights; returns it in eval mode.

    Args:
        folder: path.
        kind: str. `"Bart"` or `"MBart"`.
        biased: bool. Whether the file has `final_logits_bias`.
        bare: bool. Whether the file is that of a model without a head.
        **config: values that differ from `CONFIG`.
    """
    configuration = getattr(transformers, f"{kind}Config")
    model = CLASSES[kind](configuration(**(CONFIG | config))).eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.normal_(std=0.4, generator=draw)
            if "norm" in name and "weight" in name:
                tensor.add_(1.0)
        if bare or not biased:
            model.final_logits_bias.zero_()
    (model.model if bare else model).save_pretrained(folder)
    if not biased:
        path = folder / "model.safetensors"
        tensors = load_file(path)
        del tensors["final_logits_bias"]
        save_file(tensors, path, {"format": "pt"})
    return model


def target_of(model):
    return np.where(np.arange(4) == 0, model.start_id, TARGET).astype("int32")


def logits(theirs, target):
    return hugging_face.logits(theirs, SOURCE, target, PAD)


def compare(model, theirs):
    """Compares logits at tokens."""
    target = target_of(model)
    found = keras.ops.convert_to_numpy(model((SOURCE, target)))
    expected = logits(theirs, target)
    hugging_face.assert_close(found[TOKEN_MASK], expected[TOKEN_MASK])


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_same_logits(form, tmp_path):
    theirs = make(tmp_path, **FORMS[form])
    model = pretrained.load(tmp_path)
    assert isinstance(model, Transformer)
    assert model.normalize_embedding
    compare(model, theirs)


# With the first token that published BART models force.
@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["bart", *once(["mbart", "another start"])])
def test_same_tokens(form, tmp_path):
    theirs = make(tmp_path, **FORMS[form])
    model = pretrained.load(tmp_path)
    hugging_face.assert_same_tokens(theirs, model, SOURCE, forced=FIRST)


# Of the norms of the embeddings, and of a table whose first rows are unused.
@pytest.mark.one_backend("torch")
def test_same_gradients(tmp_path):
    theirs = make(tmp_path)
    model = pretrained.load(tmp_path)
    outputs = hugging_face.outputs(theirs, SOURCE, TARGET, PAD)
    mask = torch.tensor(TOKEN_MASK)
    for each in outputs, model((SOURCE, TARGET)):
        each[mask].square().mean().backward()
    weights = {weight.path: weight.value.grad for weight in model.weights}
    encoder, decoder = theirs.model.encoder, theirs.model.decoder
    for name, expected in {
        "source_norm/gamma": encoder.layernorm_embedding.weight.grad,
        "target_norm/beta": decoder.layernorm_embedding.bias.grad,
        "target_positions/table/embeddings": (
            decoder.embed_positions.weight.grad[2:]
        ),
        "token_embedding/table/embeddings": theirs.model.shared.weight.grad,
    }.items():
        assert expected.any()
        np.testing.assert_allclose(
            weights[name], expected, atol=1e-5 * float(expected.abs().max())
        )


@pytest.mark.parametrize("form", FORMS)
def test_save_round_trip(form, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    theirs = make(first, **FORMS[form])
    model = pretrained.load(first)
    pretrained.save(model, second)
    written = json.loads((second / "config.json").read_text())
    kind = FORMS[form].get("kind", "Bart")
    assert written["model_type"] == kind.lower()
    again = CLASSES[kind].from_pretrained(second).eval()
    target = target_of(model)
    np.testing.assert_array_equal(logits(again, target), logits(theirs, target))
    loaded = pretrained.load(second)
    mine, right = loaded.get_config(), model.get_config()
    assert {**mine, "name": ""} == {**right, "name": ""}
    compare(loaded, theirs)


@pytest.mark.every_backend
def test_a_file_of_keras_keeps_the_norms(tmp_path):
    make(tmp_path)
    model = pretrained.load(tmp_path)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for mine, right in zip(again.weights, model.weights, strict=True):
        assert mine.path == right.path
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"normalize_before": True}, "`normalize_before` .* false"),
        ({"normalize_embedding": False}, "`normalize_embedding` .* true"),
        ({"static_position_embeddings": True}, "`static_position_"),
        ({"max_position_embeddings": 18}, "must have shape .20, 8."),
        ({"eos_token_id": PAD}, "`pad_token_id` .* differ"),
        ({"decoder_start_token_id": SIZE}, "`decoder_start_token_id` .*17"),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    make(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message):
        pretrained.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_sequence_length": None}, "A Marian model must have .*halves"),
        (
            {"target_vocabulary_size": 9},
            "A BART .* target_vocabulary_size=None",
        ),
        ({"gated": True}, "A BART model must have gated=False"),
        ({"epsilon": 1e-6}, "A BART model must have epsilon=1e-05"),
        (
            {"encoder_attention_position": RotaryPosition()},
            "A BART model must have encoder_attention_position=None",
        ),
        (
            {"decoder_attention_position": [T5Position(2)]},
            "A BART model must have decoder_attention_position=None",
        ),
    ],
)
def test_unsupported_model_raises(options, message, tmp_path):
    learned = {"position_embedding": "learned", "normalize_embedding": True}
    if "max_sequence_length" in options:
        learned = {}
    model = Transformer(
        SIZE,
        **{
            "num_layers": 1,
            "num_heads": 2,
            "hidden_dim": 8,
            "intermediate_dim": 12,
            "max_sequence_length": 9,
            **learned,
            **options,
        },
    )
    with pytest.raises(ValueError, match=message):
        pretrained.save(model, tmp_path)
