"""BERT, with and without heads.

The family `bert` of Hugging Face's transformers (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805).
"""

from keras_attn.models import Bert, ReplacedTokenDetector, Roberta
from keras_attn.pretrained.bert_encoder import (
    describe_encoder,
    describe_labels,
    encoder_shapes,
    encoder_tensors,
    norm_with_old_names,
    position_ids,
    read_architecture,
    read_encoder,
    read_num_labels,
)
from keras_attn.pretrained.bert_heads import (
    ARCHITECTURES,
    CLASSIFIERS,
    DECODER,
    HEAD_PREFIXES,
    HEADS,
    architecture_of,
    encoder_of,
    has_pooler,
    head_dropout,
    head_tensors,
    labels_of,
    make_head,
)
from keras_attn.pretrained.family import Family, Sizes

_PREFIX = "bert."


def _make(config, names):
    architecture = read_architecture(config, ARCHITECTURES)
    options = read_encoder(config)
    encoder = Bert(**options, pooler=has_pooler(architecture, names))
    return make_head(
        architecture,
        encoder,
        read_num_labels(config),
        config.fraction("classifier_dropout", options["dropout"]),
    )


def _sizes(config):
    shapes = encoder_shapes(config, _PREFIX, (DECODER,))
    if read_architecture(config, ARCHITECTURES) in CLASSIFIERS:
        shape = read_num_labels(config), config.size("hidden_size")
        shapes.append((("classifier.weight",), shape))
    return Sizes(
        shapes, {"num_hidden_layers": config.size("num_hidden_layers")}
    )


def _describe(model):
    return {
        **describe_encoder("BERT", encoder_of(model)),
        "model_type": "bert",
        "architectures": [architecture_of(model)],
        "classifier_dropout": head_dropout(model),
        **describe_labels(labels_of(model)),
    }


def _tensors(model):
    encoder = encoder_of(model)
    head, copies = head_tensors(model, norm_with_old_names)
    return encoder_tensors(encoder, _PREFIX, encoder is model, copies) + head


def _serves(model):
    encoder = encoder_of(model)
    return not (
        encoder is None
        or isinstance(encoder, Roberta)
        or isinstance(model, ReplacedTokenDetector)
        # A DistilBERT; an ALBERT or ELECTRA.
        or encoder.num_segments is None
        or encoder.embedding_dim is not None
    )


BERT = Family(
    model_type="bert",
    serves=_serves,
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=lambda model: position_ids(_PREFIX),
    # Bare names are also those of RoBERTa.
    signature=("bert.embeddings.word_embeddings.weight",),
    heads=HEADS,
    head_prefixes=HEAD_PREFIXES,
)
