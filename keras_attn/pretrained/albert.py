"""ALBERT, with and without heads.

The family `albert` of Hugging Face's transformers (Lan et al. 2020,
https://arxiv.org/abs/1909.11942): a `Bert` that applies one block several times
and whose embeddings have fewer features than its block.
"""

from keras_attn import checks
from keras_attn.models import Bert, Roberta
from keras_attn.pretrained.bert_encoder import (
    describe_encoder,
    describe_labels,
    encoder_shapes,
    encoder_tensors,
    norm_with_old_names,
    position_ids,
    read_encoder,
    read_num_labels,
)
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.heads import (
    add_head,
    classifier_tensors,
    encoder_of,
    head_dropout,
    head_of,
    heads_of,
    label_shapes,
    labels_of,
    masked_lm_tensors,
    read_head,
)
from keras_attn.pretrained.tensor_names import attention, dense

_PREFIX = "albert."
_DECODER = "predictions.decoder.weight"
_HEADS = heads_of("Albert") | {"pretraining": "AlbertForPreTraining"}
_POOLER = {"sequence_classification": None, "multiple_choice": None}
_HEAD_PREFIXES = "classifier.", "predictions.", "qa_outputs.", "sop_classifier."
# Other values are not supported.
_ONLY = {"inner_group_num": 1, "num_hidden_groups": 1}
_BLOCK = "encoder.albert_layer_groups.0.albert_layers.0"
_DROPOUT = "classifier_dropout_prob"


def _make(config, names):
    for key, supported in _ONLY.items():
        config.only(key, supported)
    head = read_head(config, _HEADS)
    arguments = read_encoder(config, default_activation="gelu_new")
    needed = "sequence_classification", "multiple_choice", "pretraining"
    pooler = head in needed or any(
        name.endswith("pooler.weight") for name in names
    )
    encoder = Bert(
        **arguments,
        embedding_dim=config.size("embedding_size", 128),
        share_blocks=True,
        pooler=pooler,
    )
    dropout = config.fraction(_DROPOUT, 0.1)
    return add_head(head, encoder, read_num_labels(config), dropout)


def _sizes(config):
    layers = config.size("num_hidden_layers")
    # They share their tensors, so the file does not show how many there are.
    if layers > checks.MOST_LAYERS:
        raise ValueError(
            "`num_hidden_layers` in config.json must be at most "
            f"{checks.MOST_LAYERS}. Received: {layers}"
        )
    labels = label_shapes(
        read_head(config, _HEADS),
        read_num_labels(config),
        config.size("hidden_size"),
    )
    shapes = encoder_shapes(
        config,
        _PREFIX,
        (_DECODER,),
        config.size("embedding_size", 128),
        f"{_BLOCK}.ffn.weight",
    )
    return Sizes(shapes + labels, {})


def _describe(model):
    encoder = encoder_of(model)
    head = head_of("ALBERT", model, _HEADS, _POOLER)
    values = describe_encoder(
        "ALBERT",
        encoder,
        embedding_dim=encoder.embedding_dim,
        share_blocks=True,
    )
    dropout = head_dropout(model)
    return {
        **values,
        "model_type": "albert",
        "architectures": [_HEADS[head]],
        "embedding_size": encoder.embedding_dim,
        _DROPOUT: 0.1 if dropout is None else dropout,
        **_ONLY,
        **describe_labels(labels_of(model)),
    }


def _tensors(model):
    encoder = encoder_of(model)
    head = head_of("ALBERT", model, _HEADS, _POOLER)
    predicts = head in ("masked_lm", "pretraining")
    names = encoder_tensors(
        encoder,
        _PREFIX,
        encoder is model,
        (_DECODER,) if predicts else (),
        projection="encoder.embedding_hidden_mapping_in",
        layer=_block,
        pooler="pooler",
    )
    if predicts:
        names += masked_lm_tensors(
            model,
            "predictions.dense",
            "predictions.LayerNorm",
            "predictions.bias",
            ("predictions.decoder.bias",),
        )
    if head == "pretraining":
        names += dense("next_sentence", "sop_classifier.classifier")
    return names + classifier_tensors(head)


def _block(ours, number):
    parts = "query", "key", "value", "dense"
    return [
        *attention(f"{ours}/self_attention", f"{_BLOCK}.attention", *parts),
        *norm_with_old_names(
            f"{ours}/around_attention/norm", f"{_BLOCK}.attention.LayerNorm"
        ),
        *dense(f"{ours}/feed_forward/inner", f"{_BLOCK}.ffn"),
        *dense(f"{ours}/feed_forward/outer", f"{_BLOCK}.ffn_output"),
        *norm_with_old_names(
            f"{ours}/around_feed_forward/norm",
            f"{_BLOCK}.full_layer_layer_norm",
        ),
    ]


def _serves(model):
    encoder = encoder_of(model)
    return not (
        encoder is None
        or isinstance(encoder, Roberta)
        or encoder.num_segments is None
        or encoder.embedding_dim is None
        or not encoder.share_blocks
    )


ALBERT = Family(
    model_type="albert",
    serves=_serves,
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=lambda model: position_ids(_PREFIX),
    signature=("albert.embeddings.word_embeddings.weight",),
    heads=_HEADS,
    head_prefixes=_HEAD_PREFIXES,
)
