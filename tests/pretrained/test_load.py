"""Errors of `load`, and files of earlier versions."""

import json

import keras
import numpy as np
import pytest
import safetensors.numpy

from keras_attn import models, pretrained
from tests.pretrained import hugging_face
from tests.pretrained.hugging_face import SIZE

TABLE = "model.encoder.embed_positions.weight"
SHARED = "model.shared.weight"


def tiny_encoder():
    return models.Encoder(
        9, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4
    )


def test_weights_are_not_drawn_first(tmp_path, monkeypatch):
    encoder = models.Bert(9, 1, 1, 4, 4, max_sequence_length=8)
    pretrained.save(encoder, tmp_path)

    def draw(*_, **__):
        raise AssertionError("drawn")

    for kind in ("GlorotUniform", "RandomNormal", "TruncatedNormal"):
        monkeypatch.setattr(getattr(keras.initializers, kind), "__call__", draw)
    loaded = pretrained.load(tmp_path)
    for ours, theirs in zip(loaded.weights, encoder.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        if keras.backend.backend() == "torch":
            assert ours.value.is_contiguous()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Config and tensors written by transformers."""
    folder = tmp_path_factory.mktemp("marian")
    hugging_face.marian().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    return config, safetensors.numpy.load_file(folder / "model.safetensors")


@pytest.fixture
def load(written, tmp_path):
    """Returns a function that loads the written files with some values and
    tensors replaced, or removed where None."""

    def load(values=None, tensors=None):
        config, arrays = (
            {
                name: value
                for name, value in (old | (new or {})).items()
                if value is not None
            }
            for old, new in zip(written, (values, tensors), strict=True)
        )
        (tmp_path / "config.json").write_text(json.dumps(config))
        safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
        return pretrained.load(tmp_path)

    return load


def test_file_of_keras_is_loaded_as_it_is(tmp_path):
    model = tiny_encoder()
    model.save(tmp_path / "model.keras")
    loaded = pretrained.load(tmp_path)
    assert type(loaded) is models.Encoder and not loaded.compiled
    for ours, theirs in zip(
        loaded.get_weights(), model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_head_of_another_family_or_of_keras_raises(load, tmp_path):
    load()
    with pytest.raises(ValueError, match="`head` must be one of None for a ma"):
        pretrained.load(tmp_path, head="encoder")
    (tmp_path / "keras").mkdir()
    tiny_encoder().save(tmp_path / "keras" / "model.keras")
    with pytest.raises(ValueError, match=r"`head` must be None .*model\.keras"):
        pretrained.load(tmp_path / "keras", head="encoder")


SIZES = {
    "num_layers": 1,
    "num_heads": 1,
    "hidden_dim": 4,
    "max_sequence_length": 8,
}


def classifier():
    return models.SequenceClassifier(models.Bert(9, **SIZES), 2)


@pytest.mark.parametrize(
    "make",
    [
        classifier,
        lambda: models.GPT(9, pad_id=None, **SIZES),
        lambda: models.XLNet(9, num_layers=1, num_heads=1, hidden_dim=4),
    ],
)
def test_without_model_type_the_tensors_select_the_family(make, tmp_path):
    model = make()
    pretrained.save(model, tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["model_type"]
    path.write_text(json.dumps(config))
    loaded = pretrained.load(tmp_path)
    assert type(loaded) is type(model)
    for ours, theirs in zip(
        loaded.get_weights(), model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_bare_names_do_not_tell_bert_from_other_encoders(tmp_path):
    pretrained.save(models.Bert(9, **SIZES), tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["model_type"]
    path.write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"`model_type` .* must be one of"):
        pretrained.load(tmp_path)


def test_config_of_hugging_face_comes_first(load, tmp_path):
    tiny_encoder().save(tmp_path / "model.keras")
    assert type(load()) is models.Transformer


@pytest.mark.parametrize(
    "values, message",
    [
        (
            {"model_type": "umt5"},
            "`model_type` in .* one of .*'marian'.*umt5",
        ),
        ({"model_type": ["marian"]}, r"`model_type` .*\[.marian.\]"),
        (
            {"model_type": None},
            "`model_type` .* one of .*'marian'.*null",
        ),
        ({"d_model": None}, "must have a value for `d_model`"),
        (
            {"d_model": "8"},
            "`d_model` in .* a positive.*8",
        ),
        (
            {"encoder_layers": 0},
            "`encoder_layers` in .* a positive",
        ),
        (
            {"decoder_layers": 1.5},
            "`decoder_layers` in .* a positive",
        ),
        ({"dropout": 1.0}, r"`dropout` in .* lie in \[0, 1\)"),
        ({"scale_embedding": 1}, "`scale_embedding` in config.json .*true or"),
        ({"eos_token_id": [0, 3]}, r"`eos_token_id`.* one id.*\[0, 3\]"),
        ({"pad_token_id": -1}, "`pad_token_id`.*-1"),
        (
            {"pad_token_id": SIZE},
            r"`pad_token_id` in .* lie in \[0, 17\)",
        ),
        (
            {"activation_function": "mish"},
            "`activation_function` in .* must be one of .*quick_gelu",
        ),
        (
            {"decoder_attention_heads": 3},
            "`decoder_attention_heads` in config.json must divide .*3",
        ),
        ({"decoder_ffn_dim": 0}, "`decoder_ffn_dim` in .* a positive"),
        ({"decoder_vocab_size": 20}, "`decoder_vocab_size` .* must be 17"),
        ({"tie_word_embeddings": False}, "`tie_word_embeddings` .*be true"),
        ({"encoder_layerdrop": 0.1}, "`encoder_layerdrop` .*0.0.*0.1"),
        ({"normalize_before": True}, "`normalize_before` .*false.*true"),
        ({"normalize_embedding": True}, "`normalize_embedding`"),
        ({"add_final_layer_norm": True}, "`add_final_layer_norm`"),
        ({"static_position_embeddings": False}, "`static_position_embed"),
    ],
)
def test_unsupported_config_raises(values, message, load):
    with pytest.raises(ValueError, match=message) as info:
        load(values)
    assert "\n" not in str(info.value)


def test_config_of_an_early_version(load):
    early = {
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "classif_dropout": 0.0,
        "extra_pos_embeddings": 17,
        "id2label": {"0": "LABEL_0"},
        "normalize_before": False,
        "normalize_embedding": False,
        "num_beams": 6,
        "static_position_embeddings": True,
        "decoder_vocab_size": None,
        "tie_word_embeddings": None,
        "share_encoder_decoder_embeddings": None,
    }
    assert load(early).target_vocabulary_size is None


def test_default_config_values(load):
    model = load(
        {
            "attention_dropout": None,
            "activation_dropout": None,
            "dropout": None,
            "activation_function": None,
            "max_position_embeddings": None,
            "scale_embedding": None,
        }
    )
    config = model.get_config()
    # The defaults of transformers, not ours.
    assert {name: config[name] for name in ("dropout", "activation")} == {
        "dropout": 0.1,
        "activation": "gelu",
    }
    assert (model.max_sequence_length, model.scale_embedding) == (1024, False)


@pytest.mark.parametrize(
    "tensors, message",
    [
        ({"final_logits_bias": None}, "must hold a tensor `final_logits_bias`"),
        ({SHARED: None}, f"must hold a tensor `{SHARED}`"),
        (
            {"final_logits_bias": np.ones((1, 5), "float32")},
            r"`final_logits_bias` .* shape \(1, 17\).*\(1, 5\)",
        ),
        (
            {"model.encoder.layers.0.fc1.weight": np.ones((8, 12), "float32")},
            r"`model.encoder.layers.0.fc1.weight` .* \(12, 8\).*\(8, 12\)",
        ),
        (
            {"model.encoder.layers.2.fc1.bias": np.ones(12, "float32")},
            "a marian model and no others. .*encoder.layers.2.fc1.bias",
        ),
        (
            {"lm_head.weight": np.ones((SIZE, 8), "float32")},
            f"`lm_head.weight` in .* must equal `{SHARED}`",
        ),
        (
            {TABLE: np.ones((32, 8), "float32")},
            f"`{TABLE}` .* agree with config.json.*other values",
        ),
        (
            {TABLE: np.ones((16, 8), "float32")},
            rf"`{TABLE}` .*\(16, 8\), not \(32, 8\)",
        ),
    ],
)
def test_tensor_mismatch_raises(tensors, message, load):
    with pytest.raises(ValueError, match=message) as info:
        load(tensors=tensors)
    assert "\n" not in str(info.value)


def test_tensors_of_an_early_version(load, written):
    """Copies of tied matrices, and position tables that are now computed."""
    model = hugging_face.marian()
    matrix = written[1][SHARED]
    table = model.model.encoder.embed_positions.weight.numpy()
    copies = {
        "lm_head.weight": matrix,
        "model.decoder.embed_tokens.weight": matrix,
        TABLE: table,
        TABLE.replace("encoder", "decoder"): table.astype("float16"),
    }
    expected = load().get_weights()
    for found in (
        load(tensors=copies),
        load(tensors=copies | {SHARED: None}),
    ):
        for mine, right in zip(found.get_weights(), expected, strict=True):
            np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_missing_file_raises(name, load, tmp_path):
    load()
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=f"`directory` .*with {name} "):
        pretrained.load(tmp_path)


def test_hub_name_raises():
    with pytest.raises(ValueError, match="nothing is downloaded"):
        pretrained.load("Helsinki-NLP/opus-mt-en-de")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_damaged_config_raises(content, load, tmp_path):
    load()
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match="must be a JSON object") as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("size", [0, 50, -1])
def test_damaged_tensor_file_raises(size, load, tmp_path):
    load()
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match="complete safetensors file") as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)
