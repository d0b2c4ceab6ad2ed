"""Position-wise feed-forward layer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import apply_dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.layers.rematerialized import Rematerialized
from keras_attn.typing import Activation, Initializer, Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class FeedForward(QuantizedParts, Rematerialized):
    """Applies the same two-layer network to every position.

        FFN(x) = f(x W_1 + b_1) W_2 + b_2

    (Vaswani et al. 2017, sec. 3.3, https://arxiv.org/abs/1706.03762); gated:

        FFN(x) = (f(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2

    (Shazeer 2020, https://arxiv.org/abs/2002.05202). With a limit c, as in
    gpt-oss (OpenAI 2025, https://arxiv.org/abs/2508.10925):

        FFN(x) = (f(min(x W_1 + b_1, c)) * (clip(x W_3 + b_3, -c, c) + 1)) W_2
                 + b_2

    Args:
        intermediate_dim: int >= 1. Width of the hidden layer.
        activation: name or callable, f. Default `"relu"`.
        gated: bool. Use the gated form. Default False.
        gate_limit: float > 0. c of the gated form. Default None: no limit, and
            no added 1.
        dropout: float in [0, 1). Dropout probability of the hidden features.
            Default 0.0.
        use_bias: bool. Default True.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (..., D).
        training: bool. Whether to apply dropout.

    Returns:
        Float (..., D).

    Raises:
        ValueError: a width or a probability is out of range.

    Examples:
        >>> layer = keras_attn.layers.FeedForward(32, "gelu", gated=True)
        >>> tuple(layer(keras.ops.ones((2, 3, 8))).shape)
        (2, 3, 8)
    """

    _tensors = ("inputs",)

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation = "relu",
        gated: bool = False,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        gate_limit: float | None = None,
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

    def call(self, inputs: TensorLike, training: bool | None = None) -> Tensor:
        """Applies the layer; the class docstring lists the arguments."""
        checks.width(
            "inputs", checks.floats("inputs", inputs).shape, self._width
        )
        hidden, limit = apply_dense(self._inner, inputs), self.gate_limit
        if limit is not None:
            hidden = ops.minimum(hidden, ops.cast(limit, hidden.dtype))
        hidden = self.activation(hidden)
        if self.gated:
            gate = apply_dense(self._gate, inputs)
            if limit is not None:
                gate = ops.clip(gate, -limit, limit) + 1
            hidden = hidden * gate
        if self.dropout:
            hidden = self._dropout_layer(hidden, training=training)
        return apply_dense(self._outer, hidden)

    if TYPE_CHECKING:
        __call__ = call

    def _dense(self, name, fan_in, fan_out):
        dense = keras.layers.Dense(
            fan_out,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, fan_in))
        return dense

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
