"""ELECTRA, with and without heads.

The family `electra` of Hugging Face's transformers (Clark et al. 2020,
https://arxiv.org/abs/2003.10555): discriminators and generators, both a `Bert`
without a pooler, whose embeddings may have fewer features than its blocks.
"""

from keras_attn.models import Bert, Roberta
from keras_attn.pretrained.activations import activation_name
from keras_attn.pretrained.bert_encoder import (
    describe_encoder,
    describe_labels,
    encoder_shapes,
    encoder_tensors,
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
from keras_attn.pretrained.tensor_names import dense

_PREFIX = "electra."
_DECODER = "generator_lm_head.weight"
_HEADS = heads_of("Electra") | {"replaced_tokens": "ElectraForPreTraining"}
_POOLER = {"sequence_classification": "gelu", "multiple_choice": "gelu"}
_HEAD_PREFIXES = (
    *("classifier.", "discriminator_predictions.", "generator_"),
    *("qa_outputs.", "sequence_summary."),
)
# Of the head for multiple choice; other values are not supported.
_SUMMARY = {
    "summary_activation": "gelu",
    "summary_type": "first",
    "summary_use_proj": True,
}


def _embedding_dim(config):
    """Returns the argument of `Bert`: None if the widths are equal."""
    features = config.size("embedding_size", 128)
    return None if features == config.size("hidden_size") else features


def _make(config, names):
    head, arguments = read_head(config, _HEADS), read_encoder(config)
    if head == "masked_lm":
        # That of the generator's head, in all files of the family.
        config.only("hidden_act", "gelu")
    dropout = config.fraction("classifier_dropout", arguments["dropout"])
    if head == "multiple_choice":
        for key, supported in _SUMMARY.items():
            config.only(key, supported)
        dropout = config.fraction("summary_last_dropout", 0.1)
    encoder = Bert(
        **arguments, embedding_dim=_embedding_dim(config), pooler=False
    )
    return add_head(head, encoder, read_num_labels(config), dropout, "gelu")


def _sizes(config):
    labels = label_shapes(
        read_head(config, _HEADS),
        read_num_labels(config),
        config.size("hidden_size"),
        "classifier.out_proj",
    )
    features = _embedding_dim(config)
    return Sizes(
        encoder_shapes(config, _PREFIX, (_DECODER,), features) + labels,
        {"num_hidden_layers": config.size("num_hidden_layers")},
    )


def _describe(model):
    encoder = encoder_of(model)
    head = head_of("ELECTRA", model, _HEADS, _POOLER)
    values = describe_encoder(
        "ELECTRA", encoder, embedding_dim=encoder.embedding_dim, pooler=False
    )
    if head == "masked_lm" and values["hidden_act"] != "gelu":
        raise ValueError(
            "An ELECTRA generator must have activation='gelu'. "
            f"Received: {activation_name(encoder.activation)!r}"
        )
    key = "classifier_dropout"
    if head == "multiple_choice":
        key = "summary_last_dropout"
    return {
        **values,
        "model_type": "electra",
        "architectures": [_HEADS[head]],
        "embedding_size": encoder.embedding_dim or encoder.hidden_dim,
        key: head_dropout(model),
        **describe_labels(labels_of(model)),
    }


def _tensors(model):
    encoder = encoder_of(model)
    head = head_of("ELECTRA", model, _HEADS, _POOLER)
    names = encoder_tensors(
        encoder,
        _PREFIX,
        encoder is model,
        (_DECODER,) if head == "masked_lm" else (),
        projection="embeddings_project",
    )
    if head == "masked_lm":
        return names + masked_lm_tensors(
            model,
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head.bias",
        )
    if head == "replaced_tokens":
        names += dense("transform", "discriminator_predictions.dense")
        return names + dense(
            "output", "discriminator_predictions.dense_prediction"
        )
    if head == "sequence_classification":
        return names + classifier_tensors(
            head, "classifier.dense", "classifier.out_proj"
        )
    return names + classifier_tensors(head, "sequence_summary.summary")


def _serves(model):
    encoder = encoder_of(model)
    return not (
        encoder is None
        or isinstance(encoder, Roberta)
        or encoder.num_segments is None
        or encoder.pooler
        or encoder.share_blocks
    )


ELECTRA = Family(
    model_type="electra",
    serves=_serves,
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=lambda model: position_ids(_PREFIX),
    signature=("electra.embeddings.word_embeddings.weight",),
    heads=_HEADS,
    head_prefixes=_HEAD_PREFIXES,
)
