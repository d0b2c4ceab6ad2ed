"""RoBERTa and XLM-RoBERTa, with and without heads.

The families `roberta` (Liu et al. 2019, https://arxiv.org/abs/1907.11692) and
`xlm-roberta` (Conneau et al. 2020, https://arxiv.org/abs/1911.02116) of Hugging
Face's transformers. They differ in their tokenizers only.
"""

from keras_attn.models import Roberta
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
from keras_attn.pretrained.layouts import after_rows

_PREFIX = "roberta."
_DECODER = "lm_head.decoder.weight"
_PAD = 1  # default
_POOLER = {"sequence_classification": "tanh", "multiple_choice": None}
# A classifier has another pooler.
_HEAD_PREFIXES = "classifier.", "lm_head.", "qa_outputs.", "roberta.pooler."


def _family(model_type, name, **options):
    heads = heads_of(name)

    def make(config, names):
        arguments, head = read_encoder(config, _PAD), read_head(config, heads)
        unused = arguments["pad_id"] + 1
        if arguments["max_sequence_length"] <= unused:
            raise ValueError(
                "`max_position_embeddings` in config.json must exceed "
                f"`pad_token_id` + 1, {unused}. "
                f"Received: {arguments['max_sequence_length']}"
            )
        arguments["max_sequence_length"] -= unused
        pooler = head == "multiple_choice" or any(
            name.endswith("pooler.dense.weight") for name in names
        )
        return add_head(
            head,
            Roberta(
                **arguments,
                pooler=pooler and head != "sequence_classification",
            ),
            read_num_labels(config),
            config.fraction("classifier_dropout", arguments["dropout"]),
        )

    def sizes(config):
        labels = label_shapes(
            read_head(config, heads),
            read_num_labels(config),
            config.size("hidden_size"),
            "classifier.out_proj",
        )
        return Sizes(
            encoder_shapes(config, _PREFIX, (_DECODER,)) + labels,
            {"num_hidden_layers": config.size("num_hidden_layers")},
        )

    def describe(model):
        encoder = encoder_of(model)
        head = head_of("RoBERTa", model, heads, _POOLER)
        values = describe_encoder("RoBERTa", encoder)
        values["max_position_embeddings"] += encoder.pad_id + 1
        return {
            **values,
            "model_type": model_type,
            "architectures": [heads[head]],
            "classifier_dropout": head_dropout(model),
            **describe_labels(labels_of(model)),
        }

    def tensors(model):
        encoder = encoder_of(model)
        head = head_of("RoBERTa", model, heads, _POOLER)
        names = encoder_tensors(
            encoder,
            _PREFIX,
            encoder is model,
            (_DECODER,) if head == "masked_lm" else (),
            after_rows(encoder.pad_id + 1),
        )
        if head == "masked_lm":
            bias, copy = "lm_head.bias", "lm_head.decoder.bias"
            return names + masked_lm_tensors(
                model, "lm_head.dense", "lm_head.layer_norm", bias, (copy,)
            )
        if head == "sequence_classification":
            return names + classifier_tensors(
                head, "classifier.dense", "classifier.out_proj"
            )
        return names + classifier_tensors(head)

    return Family(
        model_type=model_type,
        serves=lambda model: isinstance(encoder_of(model), Roberta),
        make=make,
        describe=describe,
        tensors=tensors,
        sizes=sizes,
        constants=lambda model: position_ids(_PREFIX),
        heads=heads,
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
