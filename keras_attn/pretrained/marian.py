"""Marian, the translation models of Helsinki-NLP.

The family `marian` of Hugging Face's transformers, trained with the toolkit
Marian (Junczys-Dowmunt et al. 2018, https://arxiv.org/abs/1804.00344) and
published as OPUS-MT (Tiedemann and Thottingal 2020,
https://aclanthology.org/2020.eamt-1.61). A post-norm `Transformer` whose
targets start with the padding id.
"""

import keras

from keras_attn.models import Transformer
from keras_attn.ops import sinusoid
from keras_attn.ops.positions import default_positions
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Constant, Family, Sizes
from keras_attn.pretrained.layouts import ROW, SAME, linear
from keras_attn.pretrained.special_ids import target_ids
from keras_attn.pretrained.tensor_names import (
    TensorName,
    attention,
    dense,
    norm,
)

# Fixed for this family: its config has no keys for these arguments.
_FIXED = {
    **PLAIN_BLOCKS,
    "gated": False,
    "normalize_first": False,
    "epsilon": 1e-5,
    "position_embedding": "sinusoidal",
    "position_embedding_layout": "halves",
    "output_bias": True,
}
# Keys of early files; other values are not supported.
_ONLY = {
    "add_bias_logits": False,
    "add_final_layer_norm": False,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "is_encoder_decoder": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
_PROJECTIONS = "q_proj", "k_proj", "v_proj", "out_proj"


def _make(config, names):
    for key, supported in _ONLY.items():
        config.only(key, supported)
    vocabulary = config.size("vocab_size")
    target = config.size("decoder_vocab_size", vocabulary)
    tied = config.flag("tie_word_embeddings", True)
    if config.flag("share_encoder_decoder_embeddings", True):
        config.only("decoder_vocab_size", vocabulary)
        config.only("tie_word_embeddings", True)
        target = None
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
        **target_ids(config, vocabulary, target or vocabulary),
        **_FIXED,
    )


def _sizes(config):
    width = config.size("d_model")
    vocabulary = config.size("vocab_size")
    shared, source, target = (
        f"model.{part}.weight"
        for part in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
    )
    if config.flag("share_encoder_decoder_embeddings", True):
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
    layers = "encoder_layers", "decoder_layers"
    return Sizes(
        [*tables, *networks], {key: config.size(key) for key in layers}
    )


def _describe(model):
    expect("Marian", model, **_FIXED)
    if model.max_sequence_length is None:
        raise ValueError(
            "A Marian model must have a `max_sequence_length`. Received: "
            "max_sequence_length=None"
        )
    shared = model.target_vocabulary_size is None
    if shared:
        expect("Marian", model, tie_word_embeddings=True)
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
    return {
        **sizes,
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": model.source_vocabulary_size,
        "decoder_vocab_size": (
            model.source_vocabulary_size
            if shared
            else model.target_vocabulary_size
        ),
        "share_encoder_decoder_embeddings": shared,
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
        # Generation settings for transformers, as in all files of the family.
        "forced_eos_token_id": model.end_id,
        "bad_words_ids": [[token] for token in never],
    }


def _tensors(model):
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
    names.append(TensorName(bias, "final_logits_bias", ROW))
    for number in range(model.num_layers):
        names += _encoder_layer(number)
    for number in range(model.num_decoder_layers or model.num_layers):
        names += _decoder_layer(number)
    return names


_HEAD = "lm_head.weight"


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


def _constants(model):
    def table():
        positions = default_positions(model.max_sequence_length)
        encoding = sinusoid(positions, model.hidden_dim, "halves")
        return keras.ops.convert_to_numpy(encoding)[0]

    constant = Constant((model.max_sequence_length, model.hidden_dim), table)
    sides = "encoder", "decoder"
    return {f"model.{side}.embed_positions.weight": constant for side in sides}


MARIAN = Family(
    model_type="marian",
    serves=lambda model: isinstance(model, Transformer),
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=_constants,
)
