"""Token classification."""

from typing import TYPE_CHECKING, Any, Self

import keras

from keras_attn import checks
from keras_attn.layers import Dropout
from keras_attn.models.block_stack import BlockStack, make_stack
from keras_attn.models.encoder_parts import (
    check_encoder,
    encoded_shape,
    encoder_specs,
    with_encoder,
)
from keras_attn.models.head_transform import make_transform
from keras_attn.models.input_checks import CheckedModel
from keras_attn.models.layout import CLASSIFIER, check_rules, layout_map_method
from keras_attn.typing import Nest, Tensor


@keras.saving.register_keras_serializable(package="keras_attn")
class TokenClassifier(CheckedModel):
    """Classifies every token, for example by part of speech or entity.

        logits = Dropout(Encoder(x)) W + b

    with the same dense layer for every token, as in Devlin et al. 2019,
    sec. 5.3, https://arxiv.org/abs/1810.04805. With subword tokens,
    `align_labels_with_tokens` creates the labels; `bio_spans` extracts entities
    from tags.

    Args:
        encoder: `Encoder`, or another model with `encode`, `check_inputs` and
            `hidden_dim`.
        num_classes: int >= 1. With `SequenceCrossentropy` and its default
            `pad_id`, class 0 is padding.
        dropout: float in [0, 1). On the encoder's outputs. Default 0.1.
        transform: bool. Whether the vectors of tokens first go through the
            transform of masked language modeling, LayerNorm(f(h W + b)), as in
            `BertPretrainer` and ModernBERT. Default False.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: as for the encoder.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, `num_classes`), logits.

    Raises:
        ValueError: as for the encoder, or arguments out of range.

    Examples:
        >>> encoder = keras_attn.models.Encoder(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> model = keras_attn.models.TokenClassifier(encoder, num_classes=5)
        >>> tuple(model(np.array([[7, 8, 9, 0]])).shape)
        (1, 4, 5)
    """

    get_layout_map: Any = layout_map_method(CLASSIFIER)

    def __init__(
        self,
        encoder: keras.Model,
        num_classes: int,
        dropout: float = 0.1,
        transform: bool = False,
        **kwargs: Any,
    ) -> None:
        check_encoder(encoder)
        checks.positive_int("num_classes", num_classes)
        checks.fraction("dropout", dropout)
        checks.boolean("transform", transform)
        super().__init__(**kwargs)
        self.encoder = encoder
        self.num_classes = num_classes
        self.dropout = dropout
        self.transform = transform
        self._transform_dense = self._transform_norm = None
        if transform:
            self._transform_dense, self._transform_norm = make_transform(
                encoder, encoder.hidden_dim, self.dtype_policy
            )
        self._dropout_layer = Dropout(dropout, dtype=self.dtype_policy)
        self._output_dense = keras.layers.Dense(
            num_classes, dtype=self.dtype_policy, name="output"
        )
        self._output_dense.build((None, None, encoder.hidden_dim))
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        x, _ = self.encoder.encode(inputs, training=training)
        if self.transform:
            x = self._transform_norm(self._transform_dense(x))
        return self._output_dense(self._dropout_layer(x, training=training))

    if TYPE_CHECKING:
        __call__ = call

    def block_stack(self) -> BlockStack:
        """Returns the blocks of the encoder, and the output layer."""
        found = self.encoder.block_stack()
        return make_stack(found.blocks, found.normalize, self._output_dense)

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return encoder_specs(self.encoder)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        return self.encoder.check_inputs(inputs)

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        shape = encoded_shape(self.encoder, inputs_shape)
        return (*shape[:2], self.num_classes)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "transform": self.transform,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its encoder."""
        return super().from_config(with_encoder(config))
