"""RoBERTa and XLM-RoBERTa, with and without heads.

The families `roberta` (Liu et al. 2019, https://arxiv.org/abs/1907.11692) and
`xlm-roberta` (Conneau et al. 2020, https://arxiv.org/abs/1911.02116) of Hugging
Face's transformers. They differ in their tokenizers only.
"""

import numpy as np

from keras_attn.models import (
    BertPretrainer,
    MultipleChoice,
    Roberta,
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
)
from keras_attn.pretrained.bert_encoder import (
    describe_encoder,
    describe_labels,
    encoder_shapes,
    encoder_tensors,
    read_architecture,
    read_encoder,
    read_num_labels,
)
from keras_attn.pretrained.bert_heads import (
    encoder_of,
    head_dropout,
    labels_of,
)
from keras_attn.pretrained.expectations import expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.layouts import FLAT, Layout
from keras_attn.pretrained.tensor_names import TensorName, dense, norm

_PREFIX = "roberta."
_DECODER = "lm_head.decoder.weight"
_PAD = 1  # default
# By the `head` argument of `load`: what follows the name of the model in
# `architectures`.
_HEADS = {
    "encoder": "Model",
    "masked_lm": "ForMaskedLM",
    "sequence_classification": "ForSequenceClassification",
    "multiple_choice": "ForMultipleChoice",
    "token_classification": "ForTokenClassification",
    "question_answering": "ForQuestionAnswering",
}
# A classifier has another pooler.
_HEAD_PREFIXES = "classifier.", "lm_head.", "qa_outputs.", "roberta.pooler."


def _head(config, name):
    heads = {name + end: head for head, end in _HEADS.items()}
    return heads[read_architecture(config, tuple(heads))]


def _make(name):
    def make(config, names):
        head = _head(config, name)
        options = read_encoder(config, _PAD)
        unused = options["pad_id"] + 1
        if options["max_sequence_length"] <= unused:
            raise ValueError(
                "`max_position_embeddings` in config.json must exceed "
                f"`pad_token_id` + 1, {unused}. "
                f"Received: {options['max_sequence_length']}"
            )
        options["max_sequence_length"] -= unused
        pooler = head == "multiple_choice" or any(
            name.endswith("pooler.dense.weight") for name in names
        )
        pooler = pooler and head != "sequence_classification"
        encoder = Roberta(**options, pooler=pooler)
        dropout = config.fraction("classifier_dropout", options["dropout"])
        classes = read_num_labels(config)
        if head == "sequence_classification":
            return SequenceClassifier(encoder, classes, dropout)
        if head == "multiple_choice":
            return MultipleChoice(SequenceClassifier(encoder, 1, dropout))
        if head == "token_classification":
            return TokenClassifier(encoder, classes, dropout)
        if head == "question_answering":
            return SpanExtractor(encoder, dropout, no_answer="first")
        if head == "masked_lm":
            return BertPretrainer(encoder, next_sentence=False)
        return encoder

    return make


def _sizes(name):
    def sizes(config):
        shapes = encoder_shapes(config, _PREFIX, (_DECODER,))
        head, classes = _head(config, name), read_num_labels(config)
        width = config.size("hidden_size")
        if head == "sequence_classification":
            shapes.append((("classifier.out_proj.weight",), (classes, width)))
        if head == "token_classification":
            shapes.append((("classifier.weight",), (classes, width)))
        return Sizes(
            shapes, {"num_hidden_layers": config.size("num_hidden_layers")}
        )

    return sizes


def _head_of(model):
    """Returns the head of a model.

    Raises:
        ValueError: RoBERTa has no such head.
    """
    if isinstance(model, BertPretrainer):
        expect("RoBERTa", model, masked_lm=True, next_sentence=False)
        return "masked_lm"
    if isinstance(model, SpanExtractor):
        expect("RoBERTa", model, no_answer="first")
        return "question_answering"
    if isinstance(model, SequenceClassifier):
        expect("RoBERTa", model, pooled_token="first")
        expect("RoBERTa", model.encoder, pooler=False)
        return "sequence_classification"
    if isinstance(model, MultipleChoice):
        expect("RoBERTa", model.classifier.encoder, pooler=True)
        return "multiple_choice"
    if isinstance(model, TokenClassifier):
        return "token_classification"
    return "encoder"


def _describe(model_type, name):
    def describe(model):
        encoder = encoder_of(model)
        values = describe_encoder("RoBERTa", encoder)
        values["max_position_embeddings"] += encoder.pad_id + 1
        return {
            **values,
            "model_type": model_type,
            "architectures": [name + _HEADS[_head_of(model)]],
            "classifier_dropout": head_dropout(model),
            **describe_labels(labels_of(model)),
        }

    return describe


def _tensors(model):
    encoder, head = encoder_of(model), _head_of(model)
    unused = encoder.pad_id + 1
    names = encoder_tensors(
        encoder,
        _PREFIX,
        encoder is model,
        (_DECODER,) if head == "masked_lm" else (),
        _after(unused),
    )
    if head == "masked_lm":
        names += dense("transform", "lm_head.dense")
        names += norm("norm", "lm_head.layer_norm")
        bias = model.token_bias.path
        copies = ("lm_head.decoder.bias",)
        names.append(TensorName(bias, "lm_head.bias", FLAT, copies))
    if head == "sequence_classification":
        names += dense("pooler", "classifier.dense")
        names += dense("output", "classifier.out_proj")
    if head in ("multiple_choice", "token_classification"):
        names += dense("output", "classifier")
    if head == "question_answering":
        names += dense("token", "qa_outputs")
    return names


def _after(count):
    """The layout of a table after a number of rows that no token uses."""
    return Layout(
        lambda table: np.pad(table, ((count, 0), (0, 0))),
        lambda table, shape: table[count:],
    )


def _constants(model):
    name = "embeddings.position_ids"
    return dict.fromkeys((name, _PREFIX + name))


def _family(model_type, name, **options):
    return Family(
        model_type=model_type,
        serves=lambda model: isinstance(encoder_of(model), Roberta),
        make=_make(name),
        describe=_describe(model_type, name),
        tensors=_tensors,
        sizes=_sizes(name),
        constants=_constants,
        heads={head: name + end for head, end in _HEADS.items()},
        head_prefixes=_HEAD_PREFIXES,
        **options,
    )


ROBERTA = _family(
    "roberta",
    "Roberta",
    # XLM-RoBERTa has the same tensors, and the model is the same.
    signature=("roberta.embeddings.word_embeddings.weight",),
)
XLM_ROBERTA = _family("xlm-roberta", "XLMRoberta")
