"""BERT heads: their models and the names of their weights."""

from keras_attn.models import (
    Bert,
    BertPretrainer,
    MultipleChoice,
    ReplacedTokenDetector,
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
)
from keras_attn.pretrained.expectations import expect
from keras_attn.pretrained.layouts import FLAT, linear
from keras_attn.pretrained.tensor_names import TensorName, dense

# Architectures without and with a pooler.
_BARE = (
    "BertForMaskedLM",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
)
_POOLED = (
    "BertForPreTraining",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForMultipleChoice",
)
ARCHITECTURES = ("BertModel", *_BARE, *_POOLED)
# Architectures with a matrix of one row per label.
CLASSIFIERS = "BertForSequenceClassification", "BertForTokenClassification"
# By the `head` argument of `load`.
HEADS = {
    "encoder": "BertModel",
    "pretraining": "BertForPreTraining",
    "masked_lm": "BertForMaskedLM",
    "next_sentence": "BertForNextSentencePrediction",
    "sequence_classification": "BertForSequenceClassification",
    "multiple_choice": "BertForMultipleChoice",
    "token_classification": "BertForTokenClassification",
    "question_answering": "BertForQuestionAnswering",
}
HEAD_PREFIXES = "classifier.", "cls.", "qa_outputs."
_PREDICTIONS = "cls.predictions"
_NEXT = "cls.seq_relationship"
# A copy of the embedding table, to which it is tied.
DECODER = f"{_PREDICTIONS}.decoder.weight"


def has_pooler(architecture, names):
    """Returns whether the encoder of a published model has a pooler.

    Args:
        architecture: str, one of `ARCHITECTURES`.
        names: set of the names of the file's tensors.
    """
    if architecture in _POOLED:
        return True
    return any(name.endswith("pooler.dense.weight") for name in names)


def make_head(architecture, encoder, num_classes, dropout):
    """Adds a head to an encoder.

    Args:
        architecture: str, one of `ARCHITECTURES`.
        encoder: `Bert`.
        num_classes: int. Number of classes of a classifier.
        dropout: float. Dropout before a classifier.

    Returns:
        A model, or the encoder.
    """
    if architecture == "BertForSequenceClassification":
        return SequenceClassifier(encoder, num_classes, dropout)
    if architecture == "BertForMultipleChoice":
        return MultipleChoice(SequenceClassifier(encoder, 1, dropout))
    if architecture == "BertForTokenClassification":
        return TokenClassifier(encoder, num_classes, dropout)
    if architecture == "BertForQuestionAnswering":
        return SpanExtractor(encoder, dropout, no_answer="first")
    if architecture == "BertModel":
        return encoder
    return BertPretrainer(
        encoder,
        masked_lm=architecture != "BertForNextSentencePrediction",
        next_sentence=architecture != "BertForMaskedLM",
    )


def encoder_of(model):
    """Returns the `Bert` of a model, or None."""
    if isinstance(model, MultipleChoice):
        model = model.classifier
    heads = (
        *(BertPretrainer, ReplacedTokenDetector, SequenceClassifier),
        *(SpanExtractor, TokenClassifier),
    )
    found = model.encoder if isinstance(model, heads) else model
    return found if isinstance(found, Bert) else None


def architecture_of(model):
    """Returns the Hugging Face architecture of a model.

    Raises:
        ValueError: there is none.
    """
    if isinstance(model, BertPretrainer):
        if model.masked_lm and model.next_sentence:
            return "BertForPreTraining"
        if model.masked_lm:
            return "BertForMaskedLM"
        return "BertForNextSentencePrediction"
    if isinstance(model, SpanExtractor):
        expect("BERT", model, no_answer="first")
        return "BertForQuestionAnswering"
    if isinstance(model, SequenceClassifier):
        expect("BERT", model.encoder, pooler=True)
        return "BertForSequenceClassification"
    if isinstance(model, MultipleChoice):
        expect("BERT", model.classifier.encoder, pooler=True)
        return "BertForMultipleChoice"
    if isinstance(model, TokenClassifier):
        return "BertForTokenClassification"
    return "BertModel"


def labels_of(model):
    """Returns the number of classes of a classifier, or None."""
    return getattr(model, "num_classes", None)


def head_dropout(model):
    """Returns the dropout before a head, or None."""
    if isinstance(model, MultipleChoice):
        model = model.classifier
    return None if isinstance(model, Bert) else getattr(model, "dropout", None)


def head_tensors(model, norm):
    """Returns the names of a head's weights.

    Args:
        model: the model.
        norm: function of our path and their name that returns the names of
            the weights of a layer norm.

    Returns:
        List of `TensorName`s; tuple of further names of the embedding table.
    """
    if isinstance(model, (SequenceClassifier, TokenClassifier, MultipleChoice)):
        return dense("output", "classifier"), ()
    if isinstance(model, SpanExtractor):
        return dense("token", "qa_outputs"), ()
    if not isinstance(model, BertPretrainer):
        return [], ()
    names, copies = [], ()
    if model.masked_lm:
        names += dense("transform", f"{_PREDICTIONS}.transform.dense")
        names += norm("norm", f"{_PREDICTIONS}.transform.LayerNorm")
        names.append(
            TensorName(
                model.token_bias.path,
                f"{_PREDICTIONS}.bias",
                FLAT,
                (f"{_PREDICTIONS}.decoder.bias",),
            )
        )
        copies = (DECODER,)
    if model.next_sentence:
        names += [
            TensorName("next_sentence/kernel", f"{_NEXT}.weight", linear()),
            TensorName("next_sentence/bias", f"{_NEXT}.bias", FLAT),
        ]
    return names, copies
