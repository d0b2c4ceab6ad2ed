"""Sequence classification and regression."""

from typing import TYPE_CHECKING, Any, Self

import keras

from keras_attn import checks
from keras_attn.layers import Dropout
from keras_attn.models.encoder_parts import (
    check_encoder,
    encoded_shape,
    encoder_specs,
    first_tokens,
    last_tokens,
    with_encoder,
)
from keras_attn.models.head_transform import make_transform
from keras_attn.models.input_checks import CheckedModel
from keras_attn.models.layout import CLASSIFIER, check_rules, layout_map_method
from keras_attn.models.packing import refuse_packing
from keras_attn.typing import Activation, Nest, Tensor

_TOKENS = {"first": first_tokens, "last": last_tokens}


@keras.saving.register_keras_serializable(package="keras_attn")
class SequenceClassifier(CheckedModel):
    """Classifies a sentence or a sentence pair.

        logits = Dropout(pooled) W + b

    with the pooled output of a `Bert`. For other encoders the classifier adds a
    pooler, tanh(h[0] W' + b'), on the first token, or on the last as in XLNet.
    A pair is one sequence with two segments (Devlin et al. 2019, sec. 4.1,
    https://arxiv.org/abs/1810.04805).

    With one output it is a regression model, trained with `"mse"`, for example
    on sentence similarity (STS-B).

    Args:
        encoder: `Bert`, `Encoder`, or another model with `encode`,
            `check_inputs` and `hidden_dim`.
        num_classes: int >= 1. C.
        dropout: float in [0, 1). On the pooled output. Default 0.1.
        pooled_token: str. `"first"` or `"last"`: which token represents the
            sequence if the encoder has no pooler. Default `"first"`.
        pooler_activation: name or callable. Activation of the pooler that the
            classifier adds. Default `"tanh"`; DistilBERT has `"relu"`.
        transform: bool. Whether the vector of that token goes through the
            transform of masked language modeling, LayerNorm(f(h W + b)), as in
            `BertPretrainer` and ModernBERT, instead of a pooler. Default False.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: as for the encoder.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, C), logits.

    Raises:
        ValueError: as for the encoder, or arguments out of range.

    Examples:
        >>> encoder = keras_attn.models.Bert(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> model = keras_attn.models.SequenceClassifier(encoder, num_classes=3)
        >>> tuple(model(np.array([[2, 7, 3, 0]])).shape)
        (1, 3)
    """

    get_layout_map: Any = layout_map_method(CLASSIFIER)

    def __init__(
        self,
        encoder: keras.Model,
        num_classes: int,
        dropout: float = 0.1,
        pooled_token: str = "first",
        pooler_activation: Activation = "tanh",
        transform: bool = False,
        **kwargs: Any,
    ) -> None:
        check_encoder(encoder)
        checks.positive_int("num_classes", num_classes)
        checks.fraction("dropout", dropout)
        checks.choice("pooled_token", pooled_token, tuple(_TOKENS))
        checks.boolean("transform", transform)
        has_pooler = getattr(encoder, "pooler", False)
        if has_pooler and pooled_token != "first":
            raise ValueError(
                "`pooled_token` must be 'first' if the encoder has a "
                f"pooler. Received: pooled_token={pooled_token!r}"
            )
        if has_pooler and transform:
            raise ValueError(
                "`transform` must be False if the encoder has a pooler. "
                "Received: transform=True"
            )
        activation = keras.activations.get(pooler_activation)
        adds_pooler = not (has_pooler or transform)
        if not adds_pooler and activation is not keras.activations.tanh:
            raise ValueError(
                "`pooler_activation` must be 'tanh' if the encoder has a "
                "pooler or `transform` is True. "
                f"Received: pooler_activation={pooler_activation!r}"
            )
        super().__init__(**kwargs)
        self.encoder = encoder
        self.num_classes = num_classes
        self.dropout = dropout
        self.transform = transform
        self.pooled_token = pooled_token
        self.pooler_activation = activation
        width = (None, encoder.hidden_dim)
        self._pooler_dense = None
        self._transform_dense = self._transform_norm = None
        if transform:
            self._transform_dense, self._transform_norm = make_transform(
                encoder, encoder.hidden_dim, self.dtype_policy
            )
        elif adds_pooler:
            self._pooler_dense = keras.layers.Dense(
                encoder.hidden_dim,
                activation=activation,
                dtype=self.dtype_policy,
                name="pooler",
            )
            self._pooler_dense.build(width)
        self._dropout_layer = Dropout(dropout, dtype=self.dtype_policy)
        self._output_dense = keras.layers.Dense(
            num_classes, dtype=self.dtype_policy, name="output"
        )
        self._output_dense.build(width)
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        x, positions = self.encoder.encode(inputs, training=training)
        return self._output_dense(
            self._dropout_layer(self._pool(x, positions), training=training)
        )

    if TYPE_CHECKING:
        __call__ = call

    def _pool(self, x, positions):
        if self._transform_dense is None and self._pooler_dense is None:
            return self.encoder.pool(x, positions)
        token = _TOKENS[self.pooled_token](x, positions)
        if self._pooler_dense is not None:
            return self._pooler_dense(token)
        return self._transform_norm(self._transform_dense(token))

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return encoder_specs(self.encoder)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        refuse_packing(inputs, "there is one class per row")
        return self.encoder.check_inputs(inputs)

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        rows = encoded_shape(self.encoder, inputs_shape)[0]
        return rows, self.num_classes

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "transform": self.transform,
            "pooled_token": self.pooled_token,
            "pooler_activation": keras.activations.serialize(
                self.pooler_activation
            ),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its encoder."""
        return super().from_config(with_encoder(config))
