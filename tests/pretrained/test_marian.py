"""Marian models against transformers: logits and round trips."""

import json

import keras
import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.models import Transformer
from tests.pretrained import hugging_face
from tests.pretrained.hugging_face import END, PAD, SIZE, SOURCE, TARGET

torch = pytest.importorskip("torch")

import transformers

FORMS = {
    "swish": {},
    "relu": {"activation_function": "relu", "scale_embedding": False},
    "gelu": {"activation_function": "gelu"},
    "tanh": {"activation_function": "tanh"},
    "two vocabularies": {
        "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": SIZE + 3,
    },
    "untied": {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
    },
    "unequal stacks": {
        "encoder_layers": 3,
        "decoder_layers": 1,
        "decoder_attention_heads": 1,
        "decoder_ffn_dim": 20,
    },
}
TOKEN_MASK = np.array([[True] * 4, [True, True, False, False]])


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_same_logits(form, tmp_path):
    theirs = hugging_face.marian(**FORMS[form])
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert isinstance(model, Transformer)
    expected = hugging_face.logits(theirs)
    found = to_numpy(model((SOURCE, TARGET)))
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(
        found[TOKEN_MASK], expected[TOKEN_MASK], atol=1e-4
    )


def without(theirs, name):
    """Sets the weights with this name to their neutral values."""
    with torch.no_grad():
        for key, tensor in theirs.state_dict().items():
            if name in key:
                tensor.fill_("norm.weight" in key)
    return theirs


@pytest.mark.parametrize(
    "name", ["final_logits_bias", "layer_norm.weight", "layer_norm.bias"]
)
def test_easily_forgotten_weights_matter(name):
    expected = hugging_face.logits(hugging_face.marian())
    found = hugging_face.logits(without(hugging_face.marian(), name))
    assert np.abs(found - expected)[TOKEN_MASK].max() > 0.1


def test_start_token_with_the_padding_id_is_visible(tmp_path):
    theirs = hugging_face.marian()
    with torch.no_grad():
        theirs.model.shared.weight[PAD] *= 3
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert (model.start_id, model.pad_id, model.end_id) == (PAD, PAD, END)
    expected = hugging_face.logits(theirs)
    np.testing.assert_allclose(
        to_numpy(model((SOURCE, TARGET)))[TOKEN_MASK],
        expected[TOKEN_MASK],
        atol=1e-4,
    )
    # Padding after it, with the same id, is masked.
    alone = model((SOURCE[1:, :3], TARGET[1:, :2]))
    np.testing.assert_allclose(to_numpy(alone)[0], expected[1, :2], atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_files_in_half_precision(dtype, tmp_path):
    hugging_face.marian().to(dtype).save_pretrained(tmp_path)
    theirs = transformers.MarianMTModel.from_pretrained(
        tmp_path, dtype=torch.float32
    )
    expected = hugging_face.logits(theirs.eval())
    found = to_numpy(pretrained.load(tmp_path)((SOURCE, TARGET)))
    np.testing.assert_allclose(
        found[TOKEN_MASK], expected[TOKEN_MASK], atol=1e-4
    )


def test_dtype_policy_of_the_user_is_used(tmp_path):
    hugging_face.marian().save_pretrained(tmp_path)
    expected = pretrained.load(tmp_path).get_weights()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = pretrained.load(tmp_path)
    finally:
        keras.config.set_dtype_policy("float32")
    assert model.compute_dtype == "bfloat16"
    for mine, right in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("form", FORMS)
def test_save_round_trip(form, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    theirs = hugging_face.marian(**FORMS[form])
    theirs.save_pretrained(first)
    model = pretrained.load(first)
    pretrained.save(model, second)
    again = transformers.MarianMTModel.from_pretrained(second).eval()
    np.testing.assert_array_equal(
        hugging_face.logits(again), hugging_face.logits(theirs)
    )
    before, after = (
        json.loads((folder / "config.json").read_text())
        for folder in (first, second)
    )
    assert after == {key: before[key] for key in after if key in before} | {
        "forced_eos_token_id": END,
        "bad_words_ids": [[PAD]],
    }
    assert again.generation_config.bad_words_ids == [[PAD]]
    loaded = pretrained.load(second)
    mine, right = loaded.get_config(), model.get_config()
    assert {**mine, "name": ""} == {**right, "name": ""}
    for mine, right in zip(loaded.weights, model.weights, strict=True):
        assert mine.path == right.path
        np.testing.assert_array_equal(to_numpy(mine), to_numpy(right))


def test_transformers_loads_our_model(tmp_path):
    model = Transformer(
        SIZE,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        activation="gelu",
        position_embedding_layout="halves",
        max_sequence_length=20,
        output_bias=True,
        pad_id=PAD,
        start_id=1,
        end_id=END,
    )
    pretrained.save(model, tmp_path)
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    target = TARGET.copy()
    target[:, 0] = 1
    found = to_numpy(model((SOURCE, target)))
    expected = hugging_face.logits(theirs, target=target)
    np.testing.assert_allclose(
        found[TOKEN_MASK], expected[TOKEN_MASK], atol=1e-4
    )
    assert theirs.generation_config.decoder_start_token_id == 1
    assert theirs.generation_config.bad_words_ids == [[1], [PAD]]
