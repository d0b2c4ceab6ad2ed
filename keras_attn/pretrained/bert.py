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

_PREFIX = "bert."
_PREDICTIONS = "cls.predictions"
# A copy of the embedding table, to which it is tied.
_DECODER = f"{_PREDICTIONS}.decoder.weight"
_HEADS = heads_of("Bert") | {
    "pretraining": "BertForPreTraining",
    "next_sentence": "BertForNextSentencePrediction",
}
_POOLER = {"sequence_classification": None, "multiple_choice": None}
_POOLED = {*_POOLER, "pretraining", "next_sentence"}
_HEAD_PREFIXES = "classifier.", "cls.", "qa_outputs."


def _make(config, names):
    head, arguments = read_head(config, _HEADS), read_encoder(config)
    pooler = head in _POOLED or any(
        name.endswith("pooler.dense.weight") for name in names
    )
    return add_head(
        head,
        Bert(**arguments, pooler=pooler),
        read_num_labels(config),
        config.fraction("classifier_dropout", arguments["dropout"]),
    )


def _sizes(config):
    labels = label_shapes(
        read_head(config, _HEADS),
        read_num_labels(config),
        config.size("hidden_size"),
    )
    return Sizes(
        encoder_shapes(config, _PREFIX, (_DECODER,)) + labels,
        {"num_hidden_layers": config.size("num_hidden_layers")},
    )


def _describe(model):
    head = head_of("BERT", model, _HEADS, _POOLER)
    return {
        **describe_encoder("BERT", encoder_of(model)),
        "model_type": "bert",
        "architectures": [_HEADS[head]],
        "classifier_dropout": head_dropout(model),
        **describe_labels(labels_of(model)),
    }


def _tensors(model):
    encoder = encoder_of(model)
    head = head_of("BERT", model, _HEADS, _POOLER)
    predicts = head in ("masked_lm", "pretraining")
    names = encoder_tensors(
        encoder, _PREFIX, encoder is model, (_DECODER,) if predicts else ()
    )
    if predicts:
        names += masked_lm_tensors(
            model,
            f"{_PREDICTIONS}.transform.dense",
            f"{_PREDICTIONS}.transform.LayerNorm",
            f"{_PREDICTIONS}.bias",
            (f"{_PREDICTIONS}.decoder.bias",),
            norm_with_old_names,
        )
    if head in ("next_sentence", "pretraining"):
        names += dense("next_sentence", "cls.seq_relationship")
    return names + classifier_tensors(head)


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
    heads=_HEADS,
    head_prefixes=_HEAD_PREFIXES,
)
