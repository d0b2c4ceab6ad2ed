"""The heads of BERT and its successors."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from keras_attn.models import (
    Bert,
    BertPretrainer,
    MultipleChoice,
    ReplacedTokenDetector,
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
)
from keras_attn.pretrained.activations import activation_name
from keras_attn.pretrained.bert_encoder import read_architecture
from keras_attn.pretrained.expectations import expect
from keras_attn.pretrained.layouts import FLAT
from keras_attn.pretrained.tensor_names import TensorName, dense, norm

if TYPE_CHECKING:
    from keras_attn.pretrained.config import Config


# By the `head` argument of `load`: what follows the name of the model in
# `architectures`.
_ENDS = {
    "encoder": "Model",
    "masked_lm": "ForMaskedLM",
    "sequence_classification": "ForSequenceClassification",
    "multiple_choice": "ForMultipleChoice",
    "token_classification": "ForTokenClassification",
    "question_answering": "ForQuestionAnswering",
}


def heads_of(name: str) -> dict[str, Any]:
    """Returns {head: architecture} of a model.

    Args:
        name: str. What the architectures begin with, such as `"Roberta"`.
    """
    return {head: name + end for head, end in _ENDS.items()}


def read_head(config: "Config", heads: dict[str, Any]) -> str:
    """Returns the head that the `architectures` of a config name.

    Args:
        config: `Config`.
        heads: {head: architecture}.
    """
    found = read_architecture(config, tuple(heads.values()))
    return next(head for head, name in heads.items() if name == found)


def add_head(
    head: str,
    encoder: Bert,
    num_classes: int,
    dropout: float,
    pooler_activation: str = "tanh",
    transform: bool = False,
) -> Any:
    """Adds a head to an encoder.

    Args:
        head: str.
        encoder: `Bert`.
        num_classes: int. Number of classes of a classifier.
        dropout: float. Dropout before a classifier.
        pooler_activation: str. Activation of the pooler of a classifier whose
            encoder has none.
        transform: bool. Whether classifiers transform the vectors of tokens.

    Returns:
        A model, or the encoder.
    """
    if head == "encoder":
        return encoder
    if head == "masked_lm":
        return BertPretrainer(encoder, next_sentence=False)
    if head == "pretraining":
        return BertPretrainer(encoder)
    if head == "next_sentence":
        return BertPretrainer(encoder, masked_lm=False)
    if head == "replaced_tokens":
        return ReplacedTokenDetector(encoder)
    if head == "token_classification":
        return TokenClassifier(encoder, num_classes, dropout, transform)
    if head == "question_answering":
        return SpanExtractor(
            encoder, dropout, no_answer="first", transform=transform
        )
    choice = head == "multiple_choice"
    model = SequenceClassifier(
        encoder,
        1 if choice else num_classes,
        dropout,
        pooler_activation=pooler_activation,
        transform=transform,
    )
    return MultipleChoice(model) if choice else model


def encoder_of(model: Any) -> Bert | None:
    """Returns the `Bert` of a model, or None."""
    if isinstance(model, MultipleChoice):
        model = model.classifier
    heads = (
        *(BertPretrainer, ReplacedTokenDetector, SequenceClassifier),
        *(SpanExtractor, TokenClassifier),
    )
    found = model.encoder if isinstance(model, heads) else model
    return found if isinstance(found, Bert) else None


def labels_of(model: Any) -> Any:
    """Returns the number of classes of a classifier, or None."""
    return getattr(model, "num_classes", None)


def head_dropout(model: Any) -> Any:
    """Returns the dropout before a head, or None."""
    if isinstance(model, MultipleChoice):
        model = model.classifier
    return None if isinstance(model, Bert) else getattr(model, "dropout", None)


def head_of(
    family: str,
    model: Any,
    heads: Collection[str],
    pooler_activation: dict[str, Any] | None,
    transform: bool = False,
) -> str:
    """Returns the head of a model.

    Args:
        family: str. Its name in errors.
        model: the model.
        heads: collection of str, those of the family.
        pooler_activation: {head: activation or None}, of the pooler that a
            classifier adds; None if the encoder must have the pooler.
        transform: bool. Whether classifiers must have `transform=True`.

    Raises:
        ValueError: the family has no such head.
    """
    found = _head(family, model)
    if found not in heads:
        raise ValueError(
            f"A {family} model must have one of the heads {', '.join(heads)}. "
            f"Received: {type(model).__name__}, {found}"
        )
    classifier = getattr(model, "classifier", model)
    if hasattr(classifier, "transform"):
        expect(family, classifier, transform=transform)
    if found in pooler_activation:
        _expect_pooler(family, classifier, pooler_activation[found])
    return found


def _head(family, model):
    if isinstance(model, BertPretrainer):
        if not model.masked_lm:
            return "next_sentence"
        return "pretraining" if model.next_sentence else "masked_lm"
    if isinstance(model, SpanExtractor):
        expect(family, model, no_answer="first")
        return "question_answering"
    for kind, head in (
        (MultipleChoice, "multiple_choice"),
        (ReplacedTokenDetector, "replaced_tokens"),
        (SequenceClassifier, "sequence_classification"),
        (TokenClassifier, "token_classification"),
    ):
        if isinstance(model, kind):
            return head
    return "encoder"


def _expect_pooler(family, model, activation):
    expect(family, model, pooled_token="first")
    expect(family, model.encoder, pooler=activation is None)
    if activation is None:
        return
    found = activation_name(model.pooler_activation)
    if found != activation:
        raise ValueError(
            f"A {family} model must have pooler_activation={activation!r}. "
            f"Received: pooler_activation={found!r}"
        )


def label_shapes(
    head: Any, num_classes: int, width: int, name: str = "classifier"
) -> list[Any]:
    """Returns the shape of the matrix with one row per label, for `Sizes`."""
    if head == "sequence_classification":
        return [((f"{name}.weight",), (num_classes, width))]
    if head == "token_classification":
        return [(("classifier.weight",), (num_classes, width))]
    return []


def masked_lm_tensors(
    model: BertPretrainer,
    transform: str,
    norm_name: str,
    bias: str,
    copies: tuple[str, ...] = (),
    norm: Callable[..., Any] = norm,
) -> list[Any]:
    """Returns the names of the weights of masked language modeling.

    Args:
        model: `BertPretrainer`.
        transform: str. Name of the dense layer.
        norm_name: str. Name of the layer norm.
        bias: str. Name of the bias of the logits.
        copies: tuple of str. Other names of the bias.
        norm: function of our path and their name that returns the names of the
            weights of a layer norm.
    """
    return [
        *dense("transform", transform),
        *norm("transform_norm", norm_name),
        TensorName(model.token_bias.path, bias, FLAT, copies),
    ]


def classifier_tensors(
    head: str, pooler: str | None = None, output: str = "classifier"
) -> Any:
    """Returns the names of the weights of other heads than masked_lm.

    Args:
        head: str.
        pooler: str. Name of the pooler that a classifier adds, if any.
        output: str. Name of the output of a sequence classifier.
    """
    names = [] if pooler is None else dense("pooler", pooler)
    if head in ("multiple_choice", "sequence_classification"):
        return names + dense("output", output)
    if head == "token_classification":
        return dense("output", "classifier")
    if head == "question_answering":
        return dense("token", "qa_outputs")
    return []
