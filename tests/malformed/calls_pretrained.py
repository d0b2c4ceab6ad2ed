"""Malformed calls of the reader and writer of published weights."""

import json
import shutil
import warnings

from keras_attn import layers, models, pretrained
from keras_attn.layers.gelu_tanh import gelu_tanh
from keras_attn.pretrained.families import registered
from tests.helpers.tiny_models import tiny_modernbert, tiny_t5
from tests.malformed.calls import Call, kinds
from tests.malformed.calls_models import SIZES, bert, encoder
from tests.malformed.values import (
    NAN,
    Kind,
    choice,
    flag,
    instance,
    path,
    positive,
)

_JSON = {
    "null": None,
    "text": "abc",
    "negative": -1,
    "fraction": 1.5,
    "bool": True,
    "list": [3],
    "dict": {"a": 1},
    "nan": NAN,
    "huge": 10**9,
    "giant": 2**40,
    "past_int64": 2**70,
}
_DEEP = "[" * 10_000 + "]" * 10_000


def decoder(**options):
    """A `GPT` with the blocks of Llama, except for the options."""
    return models.GPT(
        12,
        **{
            "max_sequence_length": 8,
            "attention_position": layers.RotaryPosition(),
            "position_embedding": None,
            "dropout": 0.0,
            "activation": "silu",
            "gated": True,
            "normalization": "rms_norm",
            "use_bias": False,
            **SIZES,
            **options,
        },
    )


def _families():
    narrow = {"embedding_dim": 6}
    return {
        "albert": models.TokenClassifier(bert(share_blocks=True, **narrow), 3),
        "bert": models.TokenClassifier(bert(), 3),
        "distilbert": models.TokenClassifier(
            bert(num_segments=None, pooler=False), 3
        ),
        "electra": models.TokenClassifier(bert(pooler=False, **narrow), 3),
        "gemma3_text": decoder(
            activation=gelu_tanh,
            scale_embedding=True,
            normalize_output=True,
            qk_norm="head",
            sliding_window=[3],
        ),
        "gpt2": models.GPT(12, max_sequence_length=8, **SIZES),
        "gpt_neox": decoder(
            normalization="layer_norm", use_bias=True, gated=False
        ),
        "llama": decoder(),
        "marian": models.Transformer(
            12,
            max_sequence_length=8,
            position_embedding_layout="halves",
            output_bias=True,
            **SIZES,
        ),
        "modernbert": models.TokenClassifier(
            tiny_modernbert(12, **SIZES), 3, transform=True
        ),
        "qwen2": decoder(use_qkv_bias=True, sliding_window=[3]),
        "roberta": models.Roberta(12, max_sequence_length=8, **SIZES),
        "smollm3": decoder(attention_position=[layers.RotaryPosition()]),
        "t5": tiny_t5(12, **SIZES),
        "xlnet": models.XLNet(12, **SIZES),
    }


def _config(family, directory):
    """Calls of `load` with other values in `config.json`."""
    file = directory / "config.json"
    values = json.loads(file.read_text(encoding="utf-8"))

    def load(**changed):
        file.write_text(json.dumps(values | changed), encoding="utf-8")
        try:
            with warnings.catch_warnings():
                # Without `architectures`, the head is skipped.
                warnings.filterwarnings("ignore", ".* holds tensors of heads")
                return pretrained.load(directory)
        finally:
            file.write_text(json.dumps(values), encoding="utf-8")

    arguments = {}
    for key, value in values.items():
        if key in _UNREAD[family]:
            continue
        kind = Kind(value, dict(_JSON)).accepts("a missing key", "null")
        labels = _ACCEPTED.get(key, ())
        if isinstance(value, bool):
            labels = (*labels, "bool")
        if key == "eos_token_id" and family in _SEVERAL_END_IDS:
            labels = (*labels, "list")
        # A size that differs from the weights is reported with both files.
        kind = kind.named("config.json", "model.safetensors")
        arguments[key] = kind.accepts("a value of this key", *labels)
    return Call(f"pretrained.load, config of {family}", load, arguments)


# Keys that only transformers reads.
_UNREAD = {
    "albert": ("dtype", "label2id"),
    "bert": ("dtype", "label2id"),
    "distilbert": ("dtype", "label2id"),
    "electra": ("dtype", "label2id"),
    "gemma3_text": ("architectures", "dtype"),
    "gpt2": ("architectures", "dtype", "n_ctx"),
    "gpt_neox": ("architectures", "dtype"),
    "llama": ("architectures", "dtype"),
    "marian": (
        "architectures",
        "bad_words_ids",
        "dtype",
        "forced_eos_token_id",
    ),
    "modernbert": (
        "dtype",
        "label2id",
        # Those of other heads.
        "classifier_pooling",
        "decoder_bias",
        *("bos_token_id", "cls_token_id", "eos_token_id", "sep_token_id"),
    ),
    "qwen2": ("architectures", "dtype"),
    "roberta": ("dtype",),
    "smollm3": ("architectures", "dtype"),
    "t5": ("architectures", "dtype"),
    "xlnet": ("architectures", "dtype"),
}
_DECODERS = "gemma3_text", "gpt2", "gpt_neox", "llama", "qwen2", "smollm3"
_SEVERAL_END_IDS = (*_DECODERS, "xlnet")
# Labels of values that are valid for a key.
_NUMBER = "fraction", "huge", "giant", "past_int64"
_ACCEPTED = {
    "clamp_len": ("negative",),
    "final_logit_softcapping": _NUMBER,
    "global_attn_every_n_layers": ("huge",),
    "layer_norm_eps": _NUMBER,
    "layer_norm_epsilon": _NUMBER,
    "local_attention": ("huge",),
    "max_position_embeddings": ("huge",),
    "max_window_layers": ("huge",),
    "mem_len": ("huge",),
    "norm_eps": _NUMBER,
    "query_pre_attn_scalar": _NUMBER,
    "rms_norm_eps": _NUMBER,
    "sliding_window": ("huge",),
}


def _load(folder):
    place = folder / "pretrained"
    for family, model in _families().items():
        directory = place / family
        pretrained.save(model, directory, model_type=family)
        yield _config(family, directory)
    yield Call(
        "pretrained.load",
        pretrained.load,
        kinds(
            directory=path(place / "gpt2").plus(
                missing=place / "none", file=place / "gpt2" / "config.json"
            ),
            head=Kind(None, {"number": 3, "list": ["a"], "unknown": "a"}),
            allow_nonfinite=flag(False),
        ),
    )
    whole = (place / "gpt2" / "model.safetensors").read_bytes()
    damaged = {
        "empty config": ("config.json", b""),
        "deep config": ("config.json", _DEEP.encode()),
        "binary config": ("config.json", bytes(range(256))),
        "list as config": ("config.json", b"[1]"),
        "long number": ("config.json", b'{"a": ' + b"9" * 5000 + b"}"),
        "empty weights": ("model.safetensors", b""),
        "truncated weights": ("model.safetensors", whole[:-9]),
        "truncated header": ("model.safetensors", whole[:40]),
        "huge header": ("model.safetensors", b"\xff" * 8 + whole[8:]),
        "binary weights": ("model.safetensors", bytes(range(256))),
        "deep index": ("model.safetensors.index.json", _DEEP.encode()),
    }
    for label, (name, content) in damaged.items():
        copy = shutil.copytree(place / "gpt2", place / label)
        (copy / name).write_bytes(content)
        if "index" in label:
            (copy / "model.safetensors").unlink()
        kind = Kind(place / "gpt2", {"damaged": copy})
        yield Call(
            f"pretrained.load, {label}",
            pretrained.load,
            kinds(directory=kind.named(name, "config.json", "weight_map")),
            valid=False,
        )


def _save(folder):
    yield Call(
        "pretrained.save",
        pretrained.save,
        kinds(
            model=instance(models.GPT(12, max_sequence_length=8, **SIZES)).plus(
                no_family=encoder()
            ),
            directory=path(folder / "saved"),
            max_shard_size=positive(5.0),
            model_type=choice("gpt2").optional(),
        ),
    )


def _register(folder):
    def register(**arguments):
        try:
            pretrained.register_family(**arguments)
        finally:
            registered.pop("mine", None)

    yield Call(
        "pretrained.register_family",
        register,
        kinds(
            model_type=_name("mine", known="llama"),
            architecture=_name("MineForCausalLM"),
            like=_name("mistral", unknown="gpt2"),
            arguments=_entries(
                {"gated": False},
                unknown={"width": 3},
                value={"gated": 3},
                cap={"logits_soft_cap": -1.0},
                twice={"epsilon": 1e-5},
                position={"position_embedding": "learned"},
            ),
            config_keys=_entries(
                {"epsilon": ("norm_eps", 1e-6)},
                unknown={"gated": ("gated", True)},
                bare={"epsilon": "norm_eps"},
                default={"epsilon": ("norm_eps", -1.0)},
            ),
            tensor_names=_entries(
                {"feed_forward/inner": "mlp.up"},
                unknown={"feed_forward": "mlp"},
                none={"feed_forward/inner": None},
                number={"norm": 3},
            ),
            defaults=_entries(
                {"sliding_window": None},
                unknown={"hidden_size": 8},
                token={"pad_token_id": -1},
                size={"sliding_window": 0},
                flag={"tie_word_embeddings": 1},
                theta={"rope_theta": "x"},
            ),
        ),
    )


def _name(valid, **wrong):
    return Kind(
        valid,
        {"none": None, "number": 3, "list": ["a"], "dict": {}} | wrong,
    )


def _entries(valid, **wrong):
    others = {"text": "abc", "list": ["gated"], "number": 3, "key": {3: 3}}
    return Kind(valid, others | wrong)


CALLS = {"load": _load, "register_family": _register, "save": _save}
