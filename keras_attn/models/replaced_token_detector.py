"""ELECTRA's pretraining task."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn.models.encoder_parts import (
    check_encoder,
    encoded_shape,
    encoder_specs,
    with_encoder,
)
from keras_attn.models.input_checks import CheckedModel
from keras_attn.models.layout import CLASSIFIER, check_rules, layout_map_method
from keras_attn.typing import Nest, Tensor


@keras.saving.register_keras_serializable(package="keras_attn")
class ReplacedTokenDetector(CheckedModel):
    """Tells for every token whether a generator has replaced it.

        logits = f(Encoder(x) W + b) w + c

    with the encoder's activation f (Clark et al. 2020, sec. 2,
    https://arxiv.org/abs/2003.10555: ELECTRA's discriminator). The labels are 1
    at replaced tokens.

    Args:
        encoder: `Encoder`, or another model with `encode`, `check_inputs`,
            `hidden_dim` and `activation`.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: as for the encoder.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T), logits.

    Raises:
        ValueError: as for the encoder.

    Examples:
        >>> encoder = keras_attn.models.Bert(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32, pooler=False)
        >>> model = keras_attn.models.ReplacedTokenDetector(encoder)
        >>> tuple(model(np.array([[2, 7, 3, 0]])).shape)
        (1, 4)
    """

    get_layout_map: Any = layout_map_method(CLASSIFIER)

    def __init__(self, encoder: keras.Model, **kwargs: Any) -> None:
        check_encoder(encoder)
        super().__init__(**kwargs)
        self.encoder = encoder
        width = (None, None, encoder.hidden_dim)
        self._transform_dense = keras.layers.Dense(
            encoder.hidden_dim,
            activation=encoder.activation,
            dtype=self.dtype_policy,
            name="transform",
        )
        self._transform_dense.build(width)
        self._output_dense = keras.layers.Dense(
            1, dtype=self.dtype_policy, name="output"
        )
        self._output_dense.build(width)
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        x, _ = self.encoder.encode(inputs, training=training)
        x = self._output_dense(self._transform_dense(x))
        return ops.squeeze(x, -1)

    if TYPE_CHECKING:
        __call__ = call

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return encoder_specs(self.encoder)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        return self.encoder.check_inputs(inputs)

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        return encoded_shape(self.encoder, inputs_shape)[:2]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return super().get_config() | {"encoder": encoder}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its encoder."""
        return super().from_config(with_encoder(config))
