"""Errors of `save`, and atomic writes."""

import json
import os

import keras
import numpy as np
import pytest

from keras_attn import models, pretrained
from keras_attn.models import Transformer
from tests.helpers.contract import randomize
from tests.helpers.full_disk import full_disk
from tests.helpers.tiny_models import tiny_modernbert

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


TINY = {
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
}
FAMILIES = {
    "albert": lambda: models.Bert(
        60,
        share_blocks=True,
        embedding_dim=6,
        max_sequence_length=6,
        **TINY,
    ),
    "bert": lambda: models.BertPretrainer(
        models.Bert(11, max_sequence_length=6, **TINY)
    ),
    "distilbert": lambda: models.Bert(
        11, num_segments=None, pooler=False, max_sequence_length=6, **TINY
    ),
    "electra": lambda: models.Bert(
        11, embedding_dim=6, pooler=False, max_sequence_length=6, **TINY
    ),
    "gpt2": lambda: models.GPT(11, max_sequence_length=6, **TINY),
    "modernbert": lambda: tiny_modernbert(11, max_sequence_length=6, **TINY),
    "marian": small,
    "roberta": lambda: models.Roberta(11, max_sequence_length=6, **TINY),
    "vit": lambda: models.VisionTransformer((4, 4, 3), patch_size=2, **TINY),
    "xlnet": lambda: models.XLNet(11, **TINY),
}
INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize("family", FAMILIES)
def test_shards(family, tmp_path):
    model = randomize(FAMILIES[family]())
    pretrained.save(model, tmp_path, max_shard_size=2e-6)
    index = json.loads((tmp_path / INDEX).read_text())
    listed = set(index["weight_map"].values())
    assert len(listed) > 2
    assert {*os.listdir(tmp_path)} == {"config.json", INDEX, *listed}
    assert sorted(listed) == [
        f"model-{number:05}-of-{len(listed):05}.safetensors"
        for number in range(1, len(listed) + 1)
    ]
    for name in listed:
        # The header comes on top.
        assert (tmp_path / name).stat().st_size < 2000 + 2500
    loaded = pretrained.load(tmp_path)
    for one, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(other)
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_files_in_half_precision(family, dtype, tmp_path):
    torch = pytest.importorskip("torch")
    import safetensors.torch

    model = randomize(FAMILIES[family]())
    pretrained.save(model, tmp_path)
    path = tmp_path / "model.safetensors"
    halves = {
        name: tensor.to(getattr(torch, dtype))
        for name, tensor in safetensors.torch.load_file(path).items()
    }
    safetensors.torch.save_file(halves, path)
    loaded = pretrained.load(tmp_path)
    for one, other in zip(loaded.weights, model.weights, strict=True):
        assert one.dtype == "float32"
        exact = torch.from_numpy(keras.ops.convert_to_numpy(other))
        rounded = exact.to(getattr(torch, dtype)).float()
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(one), rounded.numpy()
        )


def test_transformers_reads_shards(tmp_path):
    transformers = pytest.importorskip("transformers")
    model = randomize(FAMILIES["gpt2"]())
    pretrained.save(model, tmp_path / "shards", max_shard_size=2e-6)
    pretrained.save(model, tmp_path / "whole")
    found, expected = (
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name)
        for name in ("shards", "whole")
    )
    expected = expected.state_dict()
    assert found.state_dict().keys() == expected.keys()
    for name, tensor in found.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), expected[name].numpy())
    sizes = {
        tensor.data_ptr(): tensor.nbytes
        for tensor in found.state_dict().values()
    }
    index = json.loads((tmp_path / "shards" / INDEX).read_text())
    assert index["metadata"]["total_size"] == sum(sizes.values())


def test_shards_and_a_whole_file_replace_each_other(tmp_path):
    kept = tmp_path / "model-card.safetensors"
    kept.write_bytes(b"")
    whole = {"config.json", "model.safetensors", kept.name}
    pretrained.save(small(), tmp_path)
    assert {*os.listdir(tmp_path)} == whole
    for size in (1e-6, 3e-6):
        model = small(intermediate_dim=20)
        pretrained.save(model, tmp_path, max_shard_size=size)
        listed = json.loads((tmp_path / INDEX).read_text())["weight_map"]
        assert {*os.listdir(tmp_path)} == {
            "config.json",
            INDEX,
            kept.name,
            *listed.values(),
        }
        assert pretrained.load(tmp_path).intermediate_dim == 20
    pretrained.save(small(), tmp_path)
    assert {*os.listdir(tmp_path)} == whole


def test_failed_write_of_shards_leaves_the_old_files(tmp_path):
    pretrained.save(small(), tmp_path, max_shard_size=1e-6)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # Enough for the index, not for a larger shard.
    room = max(len(content) for content in before.values()) + 500
    with full_disk(room), pytest.raises(OSError):
        pretrained.save(
            small(intermediate_dim=800), tmp_path, max_shard_size=1e-6
        )
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before


@pytest.mark.parametrize("size", [0, -1, float("nan"), "5GB", None])
def test_invalid_shard_size_raises(size, tmp_path):
    with pytest.raises(ValueError, match="`max_shard_size` must"):
        pretrained.save(small(), tmp_path, max_shard_size=size)
    assert os.listdir(tmp_path) == []
