"""Errors of `save`, and atomic writes."""

import os

import keras
import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.models import Transformer
from tests.helpers.contract import randomize
from tests.helpers.full_disk import full_disk

SIZES = {
    "source_vocabulary_size": 11,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "position_embedding_layout": "halves",
    "max_sequence_length": 16,
    "output_bias": True,
}


def small(**kwargs):
    return randomize(Transformer(**(SIZES | kwargs)))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"gated": True}, "gated=False.*True"),
        ({"normalize_first": True}, "normalize_first=False.*True"),
        ({"epsilon": 1e-6}, "epsilon=1e-05.*1e-06"),
        (
            {"position_embedding": "learned"},
            "position_embedding='sinusoidal'.*'learned'",
        ),
        (
            {"position_embedding_layout": "interleaved"},
            "position_embedding_layout='halves'",
        ),
        ({"output_bias": False}, "output_bias=True.*False"),
        (
            {"max_sequence_length": None},
            "a `max_sequence_length`. Received: max_sequence_length=None",
        ),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=True.*False"),
        ({"activation": "elu"}, "`activation` must be one of gelu, .*'elu'"),
    ],
)
def test_unsupported_model_raises(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message) as info:
        pretrained.save(small(**arguments), tmp_path)
    assert "\n" not in str(info.value)
    assert os.listdir(tmp_path) == []


def test_unsupported_class_raises(tmp_path):
    model = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(
        ValueError, match=r"of the families .*marian.*Sequential"
    ):
        pretrained.save(model, tmp_path)


def test_adapters_raise(tmp_path):
    model = small()
    model.layers[0]._table.enable_lora(2)
    with pytest.raises(ValueError, match=r"nor with adapters.*lora"):
        pretrained.save(model, tmp_path)


def test_quantized_weights_raise(tmp_path):
    model = small()
    model._encoder_blocks[0]._network._inner.quantize("int8")
    with pytest.raises(ValueError, match=r"neither quantized.*scale"):
        pretrained.save(model, tmp_path)


def test_half_precision_is_saved_as_float32(tmp_path):
    model = small(dtype="bfloat16")
    pretrained.save(model, tmp_path)
    loaded = pretrained.load(tmp_path)
    for mine, right in zip(loaded.weights, model.weights, strict=True):
        assert mine.dtype == "float32"
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(mine),
            keras.ops.convert_to_numpy(keras.ops.cast(right, "float32")),
        )


@pytest.mark.parametrize("room", [0, 1000])
def test_failed_write_leaves_the_old_files(room, tmp_path):
    pretrained.save(small(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"config.json", "model.safetensors"}
    other = small(intermediate_dim=20)
    with full_disk(room), pytest.raises((OSError, ValueError)):
        pretrained.save(other, tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before
    pretrained.save(other, tmp_path / "new" / "folder")
    loaded = pretrained.load(tmp_path / "new" / "folder")
    assert loaded.intermediate_dim == 20


def test_second_save_replaces_the_first(tmp_path):
    pretrained.save(small(), tmp_path)
    (tmp_path / "vocab.json").write_text("{}")
    pretrained.save(small(intermediate_dim=20), tmp_path)
    assert sorted(os.listdir(tmp_path)) == [
        "config.json",
        "model.safetensors",
        "vocab.json",
    ]
    assert pretrained.load(tmp_path).intermediate_dim == 20
