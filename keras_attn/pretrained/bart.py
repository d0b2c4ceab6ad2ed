"""BART, mBART and Marian.

Three families of Hugging Face's transformers: `bart` (Lewis et al. 2020,
https://arxiv.org/abs/1910.13461) and `mbart` (Liu et al. 2020,
https://arxiv.org/abs/2001.08210), which learn positions; and `marian`, the
translation models of Helsinki-NLP, trained with the toolkit Marian
(Junczys-Dowmunt et al. 2018, https://arxiv.org/abs/1804.00344) and published as
OPUS-MT (Tiedemann and Thottingal 2020,
https://aclanthology.org/2020.eamt-1.61). Each is a `Transformer`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import keras

from keras_attn.models import Transformer
from keras_attn.ops import sinusoid
from keras_attn.ops.positions import default_positions
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Constant, Family, Sizes
from keras_attn.pretrained.layouts import ROW, SAME, after_rows, linear
from keras_attn.pretrained.special_ids import target_ids
from keras_attn.pretrained.tensor_names import (
    TensorName,
    attention,
    dense,
    norm,
)

# Keys of early files; other values are not supported.
_ONLY = MappingProxyType(
    {
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "is_encoder_decoder": True,
        "normalize_before": False,
        "normalize_embedding": True,
    }
)
# Tables of learned positions start with so many rows that no position uses.
_UNUSED = 2


class _Kind(NamedTuple):
    """What differs between these families.

    Args:
        model_type: str. The value of `model_type` in `config.json`.
        title: str. Name of the family.
        architecture: str. The class in transformers.
        fixed: dict. Arguments of `Transformer` that no config determines.
        only: dict of config keys with the only supported value.
        separate: bool. Whether source and target can have a vocabulary each.
        defaults: dict. Those of the special ids.
    """

    model_type: str
    title: str
    architecture: str
    fixed: Mapping[str, Any]
    only: Mapping[str, Any]
    separate: bool = False
    defaults: Mapping[str, int] = MappingProxyType({})

    @property
    def learned(self) -> bool:
        """Whether positions are learned."""
        return self.fixed["position_embedding"] == "learned"


def _family(kind):
    return Family(
        model_type=kind.model_type,
        serves=lambda model: isinstance(model, Transformer),
        make=lambda config, names: _make(kind, config, names),
        describe=lambda model: _describe(kind, model),
        tensors=lambda model: _tensors(kind, model),
        sizes=lambda config: _sizes(kind, config),
        constants=lambda model: _constants(kind, model),
    )


_PROJECTIONS = "q_proj", "k_proj", "v_proj", "out_proj"


def _make(kind, config, names):
    for key, supported in kind.only.items():
        config.only(key, supported)
    vocabulary = config.size("vocab_size")
    target, tied = None, True
    if _shares(kind, config):
        config.only("decoder_vocab_size", vocabulary)
        config.only("tie_word_embeddings", True)
    else:
        target = config.size("decoder_vocab_size", vocabulary)
        tied = config.flag("tie_word_embeddings", True)
    bias = {}
    if "output_bias" not in kind.fixed:
        bias["output_bias"] = any(_BIAS in name for name in names)
    return Transformer(
        vocabulary,
        target,
        num_layers=config.size("encoder_layers"),
        num_decoder_layers=config.size("decoder_layers"),
        num_heads=config.heads("encoder_attention_heads", "d_model"),
        hidden_dim=config.size("d_model"),
        intermediate_dim=config.size("encoder_ffn_dim"),
        num_decoder_heads=config.heads("decoder_attention_heads", "d_model"),
        decoder_intermediate_dim=config.size("decoder_ffn_dim"),
        dropout=config.fraction("dropout", 0.1),
        attention_dropout=config.fraction("attention_dropout", 0.0),
        activation_dropout=config.fraction("activation_dropout", 0.0),
        activation=config.choice("activation_function", ACTIVATIONS, "gelu"),
        max_sequence_length=config.size("max_position_embeddings", 1024),
        scale_embedding=config.flag("scale_embedding", False),
        tie_word_embeddings=tied,
        **target_ids(config, vocabulary, target or vocabulary, **kind.defaults),
        **kind.fixed,
        **bias,
    )


def _shares(kind, config):
    """Returns whether source, target and output share one matrix."""
    return not kind.separate or config.flag(
        "share_encoder_decoder_embeddings", True
    )


def _sizes(kind, config):
    width = config.size("d_model")
    vocabulary = config.size("vocab_size")
    shared, source, target = (
        f"model.{part}.weight"
        for part in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
    )
    if _shares(kind, config):
        tables = [((shared, source, target, _HEAD), (vocabulary, width))]
    else:
        size = config.size("decoder_vocab_size", vocabulary)
        tables = [
            ((source,), (vocabulary, width)),
            ((target, _HEAD), (size, width)),
        ]
    networks = [
        (
            (f"model.{side}.layers.0.fc1.weight",),
            (config.size(f"{side}_ffn_dim"), width),
        )
        for side in ("encoder", "decoder")
    ]
    shapes = [*tables, *networks]
    if kind.learned:
        rows = config.size("max_position_embeddings", 1024) + _UNUSED
        shapes += [
            ((f"model.{side}.embed_positions.weight",), (rows, width))
            for side in ("encoder", "decoder")
        ]
    layers = "encoder_layers", "decoder_layers"
    return Sizes(
        [
            (tuple(n for name in some for n in (name, _bare(name))), shape)
            for some, shape in shapes
        ],
        {key: config.size(key) for key in layers},
    )


def _bare(name):
    """Returns the name in a file of a model without a head."""
    return name.removeprefix("model.")


def _describe(kind, model):
    expect(kind.title, model, **kind.fixed)
    if model.max_sequence_length is None:
        raise ValueError(
            f"A {kind.title} model must have a `max_sequence_length`. "
            "Received: max_sequence_length=None"
        )
    shared = model.target_vocabulary_size is None
    if not kind.separate:
        expect(kind.title, model, target_vocabulary_size=None)
    if shared:
        expect(kind.title, model, tie_word_embeddings=True)
    sizes = {
        "encoder_layers": model.num_layers,
        "encoder_attention_heads": model.num_heads,
        "encoder_ffn_dim": model.intermediate_dim,
        "encoder_layerdrop": 0.0,
        "decoder_layers": model.num_decoder_layers or model.num_layers,
        "decoder_attention_heads": model.num_decoder_heads or model.num_heads,
        "decoder_ffn_dim": (
            model.decoder_intermediate_dim or model.intermediate_dim
        ),
        "decoder_layerdrop": 0.0,
    }
    never = sorted({model.pad_id, model.start_id} - {model.end_id})
    two = {}
    if kind.separate:
        two = {
            "decoder_vocab_size": (
                model.source_vocabulary_size
                if shared
                else model.target_vocabulary_size
            ),
            "share_encoder_decoder_embeddings": shared,
        }
    return {
        **sizes,
        **two,
        "model_type": kind.model_type,
        "architectures": [kind.architecture],
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": model.source_vocabulary_size,
        "tie_word_embeddings": model.tie_word_embeddings,
        "d_model": model.hidden_dim,
        "max_position_embeddings": model.max_sequence_length,
        "scale_embedding": model.scale_embedding,
        "activation_function": activation_name(model.activation),
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.activation_dropout,
        "pad_token_id": model.pad_id,
        "decoder_start_token_id": model.start_id,
        "eos_token_id": model.end_id,
        # Generation settings for transformers, as in all files of Marian.
        "forced_eos_token_id": model.end_id,
        "bad_words_ids": [[token] for token in never],
    }


def _tensors(kind, model):
    names = []
    if model.target_vocabulary_size is None:
        sides = "model.encoder", "model.decoder"
        copies = *(f"{side}.embed_tokens.weight" for side in sides), _HEAD
        names += _embedding("token", "model.shared", copies)
    else:
        copies = (_HEAD,) if model.tie_word_embeddings else ()
        names += _embedding("source", "model.encoder.embed_tokens")
        names += _embedding("target", "model.decoder.embed_tokens", copies)
    bias = "output/bias"
    if model.tie_word_embeddings:
        bias = f"{names[-1].ours.split('/')[0]}/logits_bias"
    else:
        names.append(TensorName("output/kernel", _HEAD, linear()))
    if model.output_bias:
        names.append(TensorName(bias, _BIAS, ROW))
    for ours, side in ("source", "encoder"), ("target", "decoder"):
        theirs = f"model.{side}"
        if kind.learned:
            names.append(
                TensorName(
                    f"{ours}_positions/table/embeddings",
                    f"{theirs}.embed_positions.weight",
                    after_rows(_UNUSED),
                )
            )
        if model.normalize_embedding:
            names += norm(f"{ours}_norm", f"{theirs}.layernorm_embedding")
        if model.normalize_first:
            names += norm(f"{side}_norm", f"{theirs}.layer_norm")
    for number in range(model.num_layers):
        names += _encoder_layer(number)
    for number in range(model.num_decoder_layers or model.num_layers):
        names += _decoder_layer(number)
    return [
        name._replace(copies=(*name.copies, _bare(name.theirs)))
        if name.theirs.startswith("model.")
        else name
        for name in names
    ]


_HEAD = "lm_head.weight"
_BIAS = "final_logits_bias"


def _embedding(side, theirs, copies=()):
    ours = f"{side}_embedding/table/embeddings"
    return [TensorName(ours, f"{theirs}.weight", SAME, copies)]


def _encoder_layer(number):
    ours, theirs = f"encoder_block_{number}", f"model.encoder.layers.{number}"
    return [
        *_self_attention(ours, theirs),
        *_network(ours, theirs),
    ]


def _decoder_layer(number):
    ours, theirs = f"decoder_block_{number}", f"model.decoder.layers.{number}"
    cross = f"{theirs}.encoder_attn"
    return [
        *_self_attention(ours, theirs),
        *attention(f"{ours}/cross_attention", cross, *_PROJECTIONS),
        *norm(f"{ours}/around_cross_attention/norm", f"{cross}_layer_norm"),
        *_network(ours, theirs),
    ]


def _self_attention(ours, theirs):
    theirs = f"{theirs}.self_attn"
    return [
        *attention(f"{ours}/self_attention", theirs, *_PROJECTIONS),
        *norm(f"{ours}/around_attention/norm", f"{theirs}_layer_norm"),
    ]


def _network(ours, theirs):
    return [
        *dense(f"{ours}/feed_forward/inner", f"{theirs}.fc1"),
        *dense(f"{ours}/feed_forward/outer", f"{theirs}.fc2"),
        *norm(f"{ours}/around_feed_forward/norm", f"{theirs}.final_layer_norm"),
    ]


def _constants(kind, model):
    if kind.learned:
        return {}

    def table():
        positions = default_positions(model.max_sequence_length)
        encoding = sinusoid(positions, model.hidden_dim, "halves")
        return keras.ops.convert_to_numpy(encoding)[0]

    constant = Constant((model.max_sequence_length, model.hidden_dim), table)
    sides = "encoder", "decoder"
    names = [f"model.{side}.embed_positions.weight" for side in sides]
    return dict.fromkeys([*names, *map(_bare, names)], constant)


_COMMON = {
    **PLAIN_BLOCKS,
    "gated": False,
    "epsilon": 1e-5,
    "encoder_attention_position": None,
    "decoder_attention_position": None,
}
_MARIAN_ONLY = {
    **_ONLY,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
_BART_ONLY = {
    **_ONLY,
    "extra_pos_embeddings": _UNUSED,
    "static_position_embeddings": False,
}
_LEARNED = {
    **_COMMON,
    "position_embedding": "learned",
    "normalize_embedding": True,
}
BART = _family(
    _Kind(
        "bart",
        "BART",
        "BartForConditionalGeneration",
        {**_LEARNED, "normalize_first": False},
        _BART_ONLY,
        defaults={"pad": 1, "start": 2, "end": 2},
    )
)
MBART = _family(
    _Kind(
        "mbart",
        "mBART",
        "MBartForConditionalGeneration",
        {**_LEARNED, "normalize_first": True},
        {**_BART_ONLY, "add_final_layer_norm": True, "normalize_before": True},
        defaults={"pad": 1, "end": 2},
    )
)
MARIAN = _family(
    _Kind(
        "marian",
        "Marian",
        "MarianMTModel",
        {
            **_COMMON,
            "normalize_first": False,
            "normalize_embedding": False,
            "position_embedding": "sinusoidal",
            "position_embedding_layout": "halves",
            "output_bias": True,
        },
        _MARIAN_ONLY,
        separate=True,
    )
)
