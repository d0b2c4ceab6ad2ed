"""T5 and mT5 models against transformers: logits, searches, round trips."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import pretrained
from keras_attn.layers import T5Position
from keras_attn.models import Transformer
from tests.helpers.cases import once
from tests.helpers.tiny_models import tiny_t5
from tests.pretrained import hugging_face

torch = pytest.importorskip("torch")

import transformers

SIZE, PAD, END = 17, 0, 1
SOURCE = np.array([[5, 6, 7, 8, END], [9, 4, END, PAD, PAD]], "int32")
TARGET = np.array([[PAD, 9, 4, 3], [PAD, 7, PAD, PAD]], "int32")
TOKEN_MASK = np.array([[True] * 4, [True, True, False, False]])
CONFIG = {
    "vocab_size": SIZE,
    "d_model": 8,
    "d_kv": 3,
    "d_ff": 12,
    "num_layers": 2,
    "num_heads": 2,
    "relative_attention_num_buckets": 4,
    "relative_attention_max_distance": 6,
    "pad_token_id": PAD,
    "decoder_start_token_id": PAD,
    "eos_token_id": END,
}
# Flan-T5 and mT5 have their own output matrix.
UNTIED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
FORMS = {
    "t5": {},
    "untied": UNTIED,
    "mt5": {"kind": "MT5"},
    "untied mt5": {"kind": "MT5", **UNTIED},
    "not divided": {**UNTIED, "separate": False},
    "keys of transformers 4": {**UNTIED, "old_keys": True},
    "default key_dim": {"d_kv": 4, "num_decoder_layers": 1},
    "gated-silu": {"feed_forward_proj": "gated-silu"},
    "gated-gelu_python": {"feed_forward_proj": "gated-gelu_python"},
    "gelu": {"feed_forward_proj": "gelu"},
}


def make(folder, kind="T5", separate=True, old_keys=False, scale=0.5, **config):
    """Saves a model with random weights; returns it in eval mode.

    Args:
        folder: path.
        kind: str. `"T5"` or `"MT5"`.
        separate: bool. Whether a model with `tie_word_embeddings=False` has
            its own output matrix.
        old_keys: bool. Whether the config has the keys of transformers 4.
        scale: float. Standard deviation of the weights.
        **config: values that differ from `CONFIG`.
    """
    configuration = getattr(transformers, f"{kind}Config")(**(CONFIG | config))
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(
        configuration
    )
    tied = config.get("tie_word_embeddings", True)
    if not tied and separate:
        model.lm_head.weight = torch.nn.Parameter(torch.empty(SIZE, 8))
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=scale, generator=draw)
            if "layer_norm" in name:
                tensor.add_(1.0)
    model.save_pretrained(folder)
    if old_keys:
        change(folder, tie_word_embeddings=tied, scale_decoder_outputs=None)
    return model.eval()


def change(folder, **values):
    """Changes values of a config."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def logits(theirs):
    return hugging_face.logits(theirs, SOURCE, TARGET, PAD)


def compare(model, expected):
    """Compares logits at tokens."""
    found = keras.ops.convert_to_numpy(model((SOURCE, TARGET)))
    hugging_face.assert_close(found[TOKEN_MASK], expected[TOKEN_MASK])


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_same_logits(form, tmp_path):
    theirs = make(tmp_path, **FORMS[form])
    model = pretrained.load(tmp_path)
    assert isinstance(model, Transformer)
    compare(model, logits(theirs))


# Greedy search, and four beams.
@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["t5", *once(["untied mt5"])])
def test_same_tokens(form, tmp_path):
    theirs = make(tmp_path, **FORMS[form])
    model = pretrained.load(tmp_path)
    hugging_face.assert_same_tokens(theirs, model, SOURCE)


# Of what a layout scales: queries, and the last norm.
@pytest.mark.one_backend("torch")
def test_same_gradients(tmp_path):
    # Larger weights saturate the softmax: little but rounding remains.
    theirs = make(tmp_path, scale=0.3)
    model = pretrained.load(tmp_path)
    head_dim, width = CONFIG["d_kv"], CONFIG["d_model"]
    mask = torch.tensor(TOKEN_MASK)
    outputs = hugging_face.outputs(theirs, SOURCE, TARGET, PAD)
    for each in outputs, model((SOURCE, TARGET)):
        each[mask].square().mean().backward()
    weights = {weight.path: weight.value.grad for weight in model.weights}
    block = theirs.decoder.block[1].layer
    for name, module, factor in (
        (
            "decoder_block_1/self_attention/query/kernel",
            block[0].SelfAttention.q,
            head_dim**-0.5,
        ),
        (
            "decoder_block_1/cross_attention/key/kernel",
            block[1].EncDecAttention.k,
            1,
        ),
        ("decoder_norm/scale", theirs.decoder.final_layer_norm, width**0.5),
        ("encoder_norm/scale", theirs.encoder.final_layer_norm, 1),
        ("token_embedding/table/embeddings", theirs.shared, 1),
    ):
        expected = module.weight.grad * factor
        found = weights[name].reshape(len(weights[name]), -1)
        found = found.T if "kernel" in name else found.reshape(expected.shape)
        assert expected.any()
        np.testing.assert_allclose(
            found, expected, atol=1e-5 * float(expected.abs().max())
        )


@pytest.mark.parametrize("form", FORMS)
def test_save_round_trip(form, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    theirs = make(first, **FORMS[form])
    model = pretrained.load(first)
    kind = FORMS[form].get("kind", "T5")
    pretrained.save(model, second, model_type=kind.lower())
    expected = logits(theirs)
    again = getattr(transformers, f"{kind}ForConditionalGeneration")
    found = logits(again.from_pretrained(second).eval())
    hugging_face.assert_close(found, expected)
    loaded = pretrained.load(second)
    mine, right = loaded.get_config(), model.get_config()
    assert {**mine, "name": ""} == {**right, "name": ""}
    compare(loaded, expected)


def test_a_table_that_t5_does_not_use_is_skipped(tmp_path):
    theirs = make(tmp_path)
    path = tmp_path / "model.safetensors"
    unused = (
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    )
    save_file(load_file(path) | {unused: np.ones((4, 2), "float32")}, path)
    compare(pretrained.load(tmp_path), logits(theirs))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"feed_forward_proj": "mish"},
            "`feed_forward_proj` .* one of 'swish'",
        ),
        ({"relative_attention_num_buckets": 5}, "must have shape .5, 2."),
        ({"relative_attention_max_distance": 1}, "T5Position: `max_distance`"),
        ({"eos_token_id": PAD}, "`pad_token_id` .* differ"),
        ({"eos_token_id": SIZE}, "`eos_token_id` .*17"),
        ({"is_encoder_decoder": False}, "`is_encoder_decoder` .* true"),
        ({"d_ff": 13}, "must have shape .13, 8."),
        ({"num_decoder_layers": 3}, "decoder.block.2"),
        ({"scale_decoder_outputs": "no"}, "`scale_decoder_outputs`"),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    make(tmp_path)
    change(tmp_path, **values)
    with pytest.raises(ValueError, match=message):
        pretrained.load(tmp_path)


def ours(**options):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
    sizes |= {"intermediate_dim": 12, "start_id": PAD}
    position = {"num_buckets": 4, "max_distance": 6}
    return tiny_t5(SIZE, position, **sizes, **options)


def test_transformers_loads_our_model(tmp_path):
    model = ours(gated=True, activation="gelu", num_decoder_layers=2)
    pretrained.save(model, tmp_path)
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path)
    compare(model, logits(theirs.eval()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use_bias": True}, "A T5 model must have use_bias=False"),
        ({"attention_dropout": 0.1}, "attention_dropout=0.0"),
        ({"decoder_intermediate_dim": 9}, "decoder_intermediate_dim=12"),
        ({"target_vocabulary_size": 9}, "target_vocabulary_size=None"),
        ({"max_sequence_length": 9}, "max_sequence_length=None"),
        ({"encoder_attention_position": None}, "encoder_attention_position"),
        (
            {"decoder_attention_position": T5Position(2, 4, 6)},
            "bidirectional=False",
        ),
        (
            {
                "decoder_attention_position": T5Position(
                    2, 4, 7, bidirectional=False
                )
            },
            "same num_buckets .*4, 6.* and .*4, 7",
        ),
        ({"activation": "mish"}, "`activation`"),
    ],
)
def test_unsupported_model_raises(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretrained.save(ours(**options), tmp_path)
