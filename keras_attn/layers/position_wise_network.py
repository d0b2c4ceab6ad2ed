"""Base class of the feed-forward layers."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.layers.rematerialized import Rematerialized
from keras_attn.typing import Activation, Initializer, Shape, Tensor, TensorLike


class PositionWiseNetwork(QuantizedParts, Rematerialized):
    """Base class with the arguments and the hidden layer of two networks.

    Abstract: `FeedForward` and `MixtureOfExperts` create the dense layers and
    document the arguments.
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation,
        gated: bool,
        dropout: float,
        use_bias: bool,
        kernel_initializer: Initializer,
        bias_initializer: Initializer,
        gate_limit: float | None,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("intermediate_dim", intermediate_dim)
        checks.fraction("dropout", dropout)
        checks.boolean("gated", gated)
        checks.boolean("use_bias", use_bias)
        check_gate_limit(gate_limit, gated)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim = intermediate_dim
        self.activation: Callable[..., Any] = keras.activations.get(activation)
        self.gated = gated
        self.gate_limit = gate_limit
        self.dropout = dropout
        self.use_bias = use_bias
        self.kernel_initializer: Initializer = keras.initializers.get(
            kernel_initializer
        )
        self.bias_initializer: Initializer = keras.initializers.get(
            bias_initializer
        )

    def build(self, inputs_shape: Shape) -> None:
        """Creates the two dense layers, or three if gated."""
        self._width = width = inputs_shape[-1]
        self._inner = self._dense("inner", width, self.intermediate_dim)
        self._gate = None
        if self.gated:
            self._gate = self._dense("gate", width, self.intermediate_dim)
        self._outer = self._dense("outer", self.intermediate_dim, width)
        self._dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy)

    def _dense(self, name, fan_in, fan_out):
        """Returns a new dense layer, built."""
        raise NotImplementedError

    def _network(
        self, apply: Callable[..., Any], inputs: TensorLike, training: Any
    ) -> Tensor:
        """Applies the dense layers.

        Args:
            apply: function of a dense layer and its inputs.
            inputs: float (..., D).
            training: bool. Whether to apply dropout.
        """
        hidden, limit = apply(self._inner, inputs), self.gate_limit
        if limit is not None:
            hidden = ops.minimum(hidden, ops.cast(limit, hidden.dtype))
        hidden = self.activation(hidden)
        if self.gated:
            gate = apply(self._gate, inputs)
            if limit is not None:
                gate = ops.clip(gate, -limit, limit) + 1
            hidden = hidden * gate
        if self.dropout:
            hidden = self._dropout_layer(hidden, training=training)
        return apply(self._outer, hidden)

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        """Returns the shape of the inputs."""
        if self.built:
            checks.width("inputs", inputs_shape, self._width)
        return inputs_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        config.update(
            intermediate_dim=self.intermediate_dim,
            activation=keras.activations.serialize(self.activation),
            gated=self.gated,
            gate_limit=self.gate_limit,
            dropout=self.dropout,
            use_bias=self.use_bias,
            kernel_initializer=keras.initializers.serialize(
                self.kernel_initializer
            ),
            bias_initializer=keras.initializers.serialize(
                self.bias_initializer
            ),
        )
        return config


def check_gate_limit(gate_limit: Any, gated: bool) -> None:
    """Raises ValueError for a limit that is no number > 0, or without gate."""
    if gate_limit is None:
        return
    checks.positive("gate_limit", gate_limit)
    if not gated:
        raise ValueError(
            "`gate_limit` must be None if `gated` is False. "
            f"Received: gate_limit={gate_limit}"
        )
