"""Multiple-choice classification."""

from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import ops, tree

from keras_attn import checks
from keras_attn.models.input_checks import CheckedModel
from keras_attn.models.layout import CLASSIFIER, check_rules, layout_map_method
from keras_attn.typing import Nest, Tensor

if TYPE_CHECKING:
    from keras_attn.models.sequence_classifier import SequenceClassifier


@keras.saving.register_keras_serializable(package="keras_attn")
class MultipleChoice(CheckedModel):
    """Scores C choices, which compete in one softmax.

        logits[c] = v . Dropout(pooled[c])

    Each choice is one sequence, such as a sentence and one of four
    continuations: SWAG in Devlin et al. 2019, sec. 4.4,
    https://arxiv.org/abs/1810.04805.

    Args:
        classifier: `SequenceClassifier` with one output.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: the inputs of the classifier with an additional axis: int32
            (B, C, T) token ids, or a dict of arrays (B, C, T).
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, C), logits.

    Raises:
        ValueError: a classifier with several classes, inputs of the wrong rank,
            or as for the classifier.

    Examples:
        >>> encoder = keras_attn.models.Bert(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> model = keras_attn.models.MultipleChoice(
        ...     keras_attn.models.SequenceClassifier(encoder, num_classes=1))
        >>> tuple(model(np.array([[[2, 7, 3], [2, 8, 3]]])).shape)
        (1, 2)
    """

    get_layout_map: Any = layout_map_method(CLASSIFIER)

    def __init__(self, classifier: "SequenceClassifier", **kwargs: Any) -> None:
        if getattr(classifier, "num_classes", None) != 1:
            raise ValueError(
                "`classifier` must be a SequenceClassifier with num_classes=1. "
                f"Received: {classifier!r}"
            )
        super().__init__(**kwargs)
        self.classifier = classifier
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        inputs = self.check_inputs(inputs)
        parts = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        choices = ops.shape(parts["token_ids"])[1]
        flat = {name: _flat(part) for name, part in parts.items()}
        scores = self.classifier(flat, training=training)
        return ops.reshape(scores, (-1, choices))

    if TYPE_CHECKING:
        __call__ = call

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""

        def of_choices(spec):
            return keras.InputSpec(shape=(None, *spec.shape), dtype=spec.dtype)

        specs = self.classifier.input_specs()
        return None if specs is None else tree.map_structure(of_choices, specs)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        parts = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        if "token_ids" not in parts:
            raise ValueError(
                "`inputs` must contain token_ids. "
                f"Received: {checks.shown(sorted(map(str, parts)))}"
            )
        checked = {}
        for name, part in parts.items():
            part = checks.array(name, part)
            if len(part.shape) != 3:
                raise ValueError(
                    f"`{name}` must have shape (batch, choices, length). "
                    f"Received: {tuple(part.shape)}"
                )
            checked[name] = part
        arrays = {
            name: part
            for name, part in checked.items()
            if isinstance(part, np.ndarray)
        }
        if len(arrays) == len(checked):
            self.classifier.check_inputs(
                {name: _flat(part) for name, part in arrays.items()}
            )
        return checked if isinstance(inputs, dict) else checked["token_ids"]

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        if isinstance(inputs_shape, dict):
            inputs_shape = inputs_shape["token_ids"]
        return tuple(inputs_shape[:2])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        classifier = keras.saving.serialize_keras_object(self.classifier)
        return super().get_config() | {"classifier": classifier}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its classifier."""
        classifier = config["classifier"]
        if isinstance(classifier, dict):
            classifier = keras.saving.deserialize_keras_object(classifier)
        return super().from_config({**config, "classifier": classifier})


def _flat(part):
    length = ops.shape(part)[2]
    if isinstance(part, np.ndarray):
        return part.reshape(-1, length)
    return ops.reshape(part, (-1, length))
