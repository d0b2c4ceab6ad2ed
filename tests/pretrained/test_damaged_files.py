"""Damaged and hostile files are refused before memory is allocated."""

import json
import shutil
import time

import numpy as np
import pytest
import safetensors.numpy

from keras_attn import models, pretrained
from keras_attn.pretrained.tensor_file import TensorFile
from tests.helpers.tiny_models import tiny_modernbert, tiny_t5

pytestmark = pytest.mark.one_backend
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
}
MODELS = {
    "albert": lambda: models.TokenClassifier(
        models.Bert(
            11,
            share_blocks=True,
            embedding_dim=6,
            max_sequence_length=6,
            **SIZES,
        ),
        3,
    ),
    "bert": lambda: models.TokenClassifier(
        models.Bert(11, max_sequence_length=6, **SIZES), 3
    ),
    "distilbert": lambda: models.TokenClassifier(
        models.Bert(
            11,
            num_segments=None,
            pooler=False,
            max_sequence_length=6,
            **SIZES,
        ),
        3,
    ),
    "electra": lambda: models.TokenClassifier(
        models.Bert(
            11,
            embedding_dim=6,
            pooler=False,
            max_sequence_length=6,
            **SIZES,
        ),
        3,
    ),
    "gpt2": lambda: models.GPT(11, max_sequence_length=6, **SIZES),
    "modernbert": lambda: models.TokenClassifier(
        tiny_modernbert(11, max_sequence_length=6, **SIZES), 3, transform=True
    ),
    "marian": lambda: models.Transformer(
        11,
        max_sequence_length=6,
        position_embedding_layout="halves",
        output_bias=True,
        **SIZES,
    ),
    "roberta": lambda: models.TokenClassifier(
        models.Roberta(11, max_sequence_length=6, **SIZES), 3
    ),
    "t5": lambda: tiny_t5(11, **SIZES),
    "xlnet": lambda: models.XLNet(11, **SIZES),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders with a model of each family."""
    folder = tmp_path_factory.mktemp("saved")
    for family, make in MODELS.items():
        pretrained.save(make(), folder / family)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """Returns a copy of a saved folder, with other values in its config."""

    def copied(family="gpt2", **values):
        found = shutil.copytree(saved / family, tmp_path / family)
        path = found / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))
        return found

    return copied


def refused(folder, *expected):
    with pytest.raises(ValueError) as info:
        pretrained.load(folder)
    message = str(info.value)
    assert "\n" not in message
    for part in expected:
        assert part in message, message
    return message


HUGE = 10**9


@pytest.mark.parametrize(
    "family, key",
    [
        ("albert", "embedding_size"),
        ("albert", "intermediate_size"),
        ("albert", "num_hidden_layers"),
        ("bert", "vocab_size"),
        ("bert", "hidden_size"),
        ("bert", "intermediate_size"),
        ("bert", "max_position_embeddings"),
        ("bert", "type_vocab_size"),
        ("bert", "num_hidden_layers"),
        ("gpt2", "vocab_size"),
        ("gpt2", "n_embd"),
        ("gpt2", "n_inner"),
        ("gpt2", "n_positions"),
        ("gpt2", "n_layer"),
        ("distilbert", "vocab_size"),
        ("distilbert", "max_position_embeddings"),
        ("distilbert", "hidden_dim"),
        ("distilbert", "n_layers"),
        ("electra", "embedding_size"),
        ("electra", "num_hidden_layers"),
        ("modernbert", "vocab_size"),
        ("modernbert", "hidden_size"),
        ("modernbert", "intermediate_size"),
        ("modernbert", "num_hidden_layers"),
        ("marian", "vocab_size"),
        ("marian", "d_model"),
        ("marian", "encoder_ffn_dim"),
        ("marian", "decoder_ffn_dim"),
        ("marian", "encoder_layers"),
        ("marian", "decoder_layers"),
        ("roberta", "vocab_size"),
        ("roberta", "max_position_embeddings"),
        ("roberta", "num_hidden_layers"),
        ("t5", "vocab_size"),
        ("t5", "d_model"),
        ("t5", "d_ff"),
        ("t5", "num_layers"),
        ("t5", "num_decoder_layers"),
        ("t5", "relative_attention_num_buckets"),
        ("xlnet", "vocab_size"),
        ("xlnet", "d_model"),
        ("xlnet", "d_inner"),
        ("xlnet", "n_layer"),
    ],
)
def test_huge_sizes_are_refused_at_once(family, key, folder, monkeypatch):
    values = {key: HUGE}
    if family == "marian" and key == "vocab_size":
        values["decoder_vocab_size"] = HUGE
    path = folder(family, **values)
    # No model may be built.
    for name in (
        *("albert.Bert", "bert.Bert", "distilbert.Bert", "electra.Bert"),
        *("gpt2.GPT", "bart.Transformer", "roberta.Roberta", "xlnet.XLNet"),
        *("modernbert.Bert", "t5.Transformer"),
    ):
        monkeypatch.delattr(f"keras_attn.pretrained.{name}")
    start = time.process_time()
    refused(path, str(HUGE), "config.json")
    assert time.process_time() - start < 1


def test_huge_number_of_labels(folder):
    path = folder("bert", id2label=None, num_labels=HUGE)
    refused(path, "`classifier.weight` in model.safetensors", str(HUGE))


@pytest.mark.parametrize(
    "value", ["8", -8, 0, 8.0, True, [8], {"a": 8}, float("nan"), HUGE**9]
)
@pytest.mark.parametrize(
    "family, key",
    [("bert", "hidden_size"), ("gpt2", "n_head"), ("marian", "d_model")],
)
def test_sizes_of_the_wrong_type(family, key, value, folder):
    refused(folder(family, **{key: value}), "config.json")


@pytest.mark.parametrize(
    "family, values",
    [
        ("bert", {"architectures": "BertModel"}),
        ("bert", {"architectures": [1]}),
        ("bert", {"architectures": {"a": 1}}),
        ("bert", {"id2label": 3}),
        ("bert", {"id2label": ["a"]}),
        ("bert", {"hidden_dropout_prob": "0.1"}),
        ("bert", {"hidden_dropout_prob": float("nan")}),
        ("bert", {"hidden_act": ["gelu"]}),
        ("bert", {"layer_norm_eps": float("inf")}),
        ("bert", {"pad_token_id": 11}),
        ("gpt2", {"tie_word_embeddings": 1}),
        ("gpt2", {"eos_token_id": [1, "2"]}),
        ("gpt2", {"scale_attn_weights": 1}),
        ("gpt2", {"bos_token_id": 11}),
        ("xlnet", {"mem_len": "x"}),
        ("xlnet", {"bi_data": "no"}),
        ("xlnet", {"n_head": 3}),
    ],
)
def test_values_of_the_wrong_type(family, values, folder):
    (key,) = values
    refused(folder(family, **values), f"`{key}` in config.json", "Received: ")


@pytest.mark.parametrize(
    "content, expected",
    [
        ('{"eos_token_id": [1, 11]}', "`eos_token_id` in generation_config"),
        ('{"eos_token_id": "2"}', "`eos_token_id` in generation_config"),
        ("[1]", "generation_config.json must be a JSON object"),
    ],
)
def test_end_ids_of_a_damaged_generation_config(content, expected, folder):
    path = folder()
    (path / "generation_config.json").write_text(content)
    refused(path, expected, "Received: ")


def test_marian_needs_a_padding_id_of_its_own(folder):
    path = folder("marian", pad_token_id=2, eos_token_id=2)
    refused(path, "`pad_token_id` in config.json", "`eos_token_id`", "2")


@pytest.mark.parametrize(
    "content, why",
    [
        (b"[" * 10_000, "nested too deeply"),
        (b'{"a": ' * 10_000, "nested too deeply"),
        (b'{"n_layer": 1, "n_layer": 2}', "`n_layer` is repeated"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "`b` is repeated"),
        (b'"gpt2"', "a str"),
        (b"null", "a NoneType"),
        (b'{"model_type": "\xff"}', "utf-8"),
        (b"\x80\x04\x95pickle", "utf-8"),
    ],
)
def test_damaged_json(content, why, folder):
    path = folder()
    (path / "config.json").write_bytes(content)
    refused(path, "config.json must be a JSON object", why)
    index = folder("xlnet")
    (index / "model.safetensors").rename(index / "a.safetensors")
    (index / "model.safetensors.index.json").write_bytes(content)
    refused(index, "model.safetensors.index.json must be a JSON object", why)


def with_header(path, header, size=0):
    """Writes a safetensors file with a header and `size` bytes of tensors."""
    if not isinstance(header, bytes):
        header = json.dumps(header).encode()
    start = len(header).to_bytes(8, "little")
    path.write_bytes(start + header + b"\0" * size)


ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
DUPLICATE = (
    b'{"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}, '
    b'"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}'
)


@pytest.mark.parametrize(
    "header, size, message",
    [
        ({"a": {**ENTRY, "dtype": "F8_E4M3"}}, 24, "`a` in the header .*F8_E4"),
        ({"a": {**ENTRY, "dtype": 4}}, 24, "`a` in .* `dtype`.*4"),
        ({"a": {**ENTRY, "shape": [2, -3]}}, 24, "`a` in .* `shape`"),
        ({"a": {**ENTRY, "shape": [2, 10**12]}}, 24, "`a` in .* bytes, for"),
        ({"a": {**ENTRY, "shape": "23"}}, 24, "`a` in .* `shape`"),
        ({"a": {**ENTRY, "data_offsets": [24]}}, 24, "`a` in .* two integers"),
        ({"a": [1]}, 24, "`a` in .* object"),
        ({"a": ENTRY}, 0, "complete safetensors file.*24 bytes"),
        ({"a": ENTRY}, 25, "complete safetensors file.*24 bytes"),
        ({"a": ENTRY, "b": ENTRY}, 24, "complete safetensors file"),
        (DUPLICATE, 0, "`a` is repeated"),
        (b"[" * 10_000, 0, "nested too deeply"),
        (b"{", 0, "JSON object"),
    ],
)
def test_damaged_header(header, size, message, tmp_path):
    path = tmp_path / "model.safetensors"
    with_header(path, header, size)
    with pytest.raises(ValueError, match=message) as info:
        TensorFile(path)
    assert "model.safetensors" in str(info.value)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("content", [b"", b"1234", b"\xff" * 8, b"\xff" * 99])
def test_header_longer_than_the_file(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="header is longer than the file"):
        TensorFile(path)


TABLE = "transformer.wte.weight"


def with_tensor(path, name, change):
    path = path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    tensors[name] = change(tensors[name])
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})


def with_value(value):
    def change(array):
        array = array.copy()
        array[1, 2] = value
        return array

    return change


@pytest.mark.parametrize(
    "change, received",
    [
        (lambda x: x.astype("int32"), "I32"),
        (lambda x: x.astype("int8"), "I8"),
        (lambda x: x > 0, "BOOL"),
        (lambda x: x.astype("complex64"), "C64"),
        (with_value(np.nan), "1 of 88 values such as nan"),
        (with_value(-np.inf), "1 of 88 values such as -inf"),
        (lambda x: with_value(1e300)(x.astype("float64")), "such as inf"),
    ],
)
def test_tensors_that_are_no_weights(change, received, folder):
    path = folder()
    with_tensor(path, TABLE, change)
    refused(path, f"`{TABLE}` in model.safetensors", received)


def test_nonfinite_weights_on_request(folder):
    path = folder()
    with_tensor(path, TABLE, with_value(np.nan))
    model = pretrained.load(path, allow_nonfinite=True)
    table = model.get_weights()[0]
    assert np.isnan(table[1, 2]) and np.isnan(table).sum() == 1
    with pytest.raises(ValueError, match="`allow_nonfinite` must be True or"):
        pretrained.load(path, allow_nonfinite=1)


def test_known_buffers_are_skipped(folder):
    path = folder("bert")
    tensors = safetensors.numpy.load_file(path / "model.safetensors")
    tensors["bert.embeddings.position_ids"] = np.arange(6)[None]
    safetensors.numpy.save_file(tensors, path / "model.safetensors")
    found = pretrained.load(path).get_weights()
    right = pretrained.load(path).get_weights()
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(one, other)


def sharded(path):
    """Splits the file of a folder into two shards with an index."""
    whole = path / "model.safetensors"
    tensors = safetensors.numpy.load_file(whole)
    whole.unlink()
    names = sorted(tensors)
    listed = {}
    for number, part in enumerate((names[::2], names[1::2])):
        shard = f"model-0000{number + 1}-of-00002.safetensors"
        chosen = {name: tensors[name] for name in part}
        safetensors.numpy.save_file(chosen, path / shard)
        listed |= dict.fromkeys(part, shard)
    index = {"metadata": {"total_size": 1}, "weight_map": listed}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return path, listed


def reindexed(path, listed):
    index = path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": listed}))
    return path


@pytest.mark.parametrize("family", MODELS)
def test_shards(family, folder, saved):
    path, _ = sharded(folder(family))
    found = pretrained.load(path).get_weights()
    right = pretrained.load(saved / family).get_weights()
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "shard",
    [
        "../model.safetensors",
        "/etc/model.safetensors",
        "a/model.safetensors",
        "..\\model.safetensors",
        "model.bin",
        "..",
        "",
        3,
        None,
    ],
)
def test_names_of_shards_outside_the_folder(shard, folder):
    path, listed = sharded(folder())
    reindexed(path, listed | {TABLE: shard})
    refused(path, f"`{TABLE}` in `weight_map`", "same folder", repr(shard))


def test_shards_that_do_not_fit_their_index(folder):
    path, listed = sharded(folder())
    other = next(shard for shard in listed.values() if shard != listed[TABLE])
    reindexed(path, listed | {TABLE: other})
    refused(path, f"`{TABLE}` must be in the shard", f"is in {listed[TABLE]}")
    reindexed(path, {n: s for n, s in listed.items() if n != TABLE})
    refused(path, f"`{TABLE}` must be in the shard", "None")
    reindexed(path, listed | {"other": other})
    refused(path, f"{other} must hold the tensor `other`")
    reindexed(path, listed | {"other": "third.safetensors"})
    refused(path, "third.safetensors, which", "must be a file in the folder")
    reindexed(path, {})
    refused(path, "`weight_map` in model.safetensors.index.json must map")
    reindexed(path, listed)
    content = (path / other).read_bytes()
    (path / other).write_bytes(content[:-1])
    refused(path, f"{other} must be a complete safetensors file")


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "pytorch_model.bin.index.json"]
)
def test_pickled_weights_are_explained(name, folder):
    path = folder()
    (path / "model.safetensors").rename(path / name)
    refused(path, name, "save_pretrained", "unpickling can run any code")


@pytest.mark.parametrize("directory", [None, 3, "", b"x", ["a"]])
def test_directories_of_the_wrong_type(directory):
    with pytest.raises(ValueError, match="`directory` must be a path"):
        pretrained.load(directory)
