"""Base class of the Transformer blocks."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import bool_mask
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.blocks.residual import Residual
from keras_attn.layers.attention_position import (
    check_position,
    serialized_position,
    with_position,
)
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.mixture_of_experts import MixtureOfExperts
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.layers.rematerialized import Rematerialized
from keras_attn.ops import (
    Visibility,
    packed_positions,
    positions_from_mask,
)
from keras_attn.ops.visibility import implicit_mask
from keras_attn.typing import Activation, Initializer, Shape

if TYPE_CHECKING:
    from keras_attn.layers.attention_position import AttentionPosition


class Block(QuantizedParts, Rematerialized):
    """Base class with the configuration of a block and its sublayers.

    Abstract: `EncoderBlock` and `DecoderBlock` define the computation and
    document the arguments.
    """

    # Of all blocks.
    _tensors = (
        "inputs",
        "queries",
        "past",
        "memory",
        "mask",
        "past_mask",
        "memory_mask",
        "attention_mask",
        "positions",
        "memory_positions",
        "segment_ids",
        "past_segment_ids",
        "memory_segment_ids",
    )
    _visibilities = "content_visibility", "query_visibility"

    def _check_argument(self, name, value):
        super()._check_argument(name, value)
        if name in self._visibilities and value is not None:
            checks.instance(name, value, Visibility, "a `Visibility`")

    def __init__(
        self,
        *,
        num_heads: int,
        intermediate_dim: int,
        key_dim: int | None = None,
        num_key_value_heads: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        gated: bool = False,
        normalize_first: bool = False,
        epsilon: float = 1e-5,
        use_bias: bool = True,
        sliding_window: int | None = None,
        normalization: str = "layer_norm",
        normalize_output: bool = False,
        use_parallel_residual: bool = False,
        qk_norm: str | None = None,
        attention_soft_cap: float | None = None,
        use_sinks: bool = False,
        layer_scale: float | None = None,
        stochastic_depth: float = 0.0,
        gate_limit: float | None = None,
        use_qkv_bias: bool | None = None,
        skip_first_norm: bool = False,
        num_experts: int | None = None,
        num_experts_per_tok: int = 2,
        router_aux_loss_coef: float = 0.01,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        attention_position: "AttentionPosition | None" = None,
        **kwargs: Any,
    ) -> None:
        if sliding_window is not None:
            checks.positive_int("sliding_window", sliding_window)
        config = BlockConfig(
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=key_dim,
            num_key_value_heads=num_key_value_heads,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            activation=activation,
            gated=gated,
            normalize_first=normalize_first,
            epsilon=epsilon,
            use_bias=use_bias,
            sliding_window=sliding_window,
            normalization=normalization,
            normalize_output=normalize_output,
            use_parallel_residual=use_parallel_residual,
            qk_norm=qk_norm,
            attention_soft_cap=attention_soft_cap,
            use_sinks=use_sinks,
            layer_scale=layer_scale,
            stochastic_depth=stochastic_depth,
            gate_limit=gate_limit,
            use_qkv_bias=use_qkv_bias,
            skip_first_norm=skip_first_norm,
            num_experts=num_experts,
            num_experts_per_tok=num_experts_per_tok,
            router_aux_loss_coef=router_aux_loss_coef,
        )
        if attention_position is not None:
            check_position(attention_position)
        super().__init__(**kwargs)
        self.supports_masking = True
        self._block_config = config
        config.set_attributes(self)
        self.kernel_initializer: Initializer = keras.initializers.get(
            kernel_initializer
        )
        self.bias_initializer: Initializer = keras.initializers.get(
            bias_initializer
        )
        self.attention_position = attention_position

    @staticmethod
    def _width_of(name, shape):
        """Returns the features of an input (B, T, D) of `build`."""
        if len(shape) != 3 or shape[-1] is None:
            raise ValueError(
                f"`{name}` must have rank 3, and a known number of features. "
                f"Received: {name} of shape {tuple(shape)}"
            )
        return shape[-1]

    def _attention(
        self, name, width, memory_width=None, causal=False, use_bias=None
    ):
        attention = MultiHeadAttention(
            self.num_heads,
            self._block_config.head_dim(width),
            num_key_value_heads=self.num_key_value_heads,
            dropout=self.attention_dropout,
            use_bias=self.use_bias if use_bias is None else use_bias,
            sliding_window=None if memory_width else self.sliding_window,
            causal=causal,
            attention_position=None
            if memory_width
            else self.attention_position,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            qk_norm=self.qk_norm,
            qk_norm_epsilon=self.epsilon,
            soft_cap=self.attention_soft_cap,
            use_sinks=self.use_sinks,
            use_qkv_bias=self.use_qkv_bias,
            dtype=self.dtype_policy,
            name=name,
        )
        attention.build(
            (None, None, width), (None, None, memory_width or width)
        )
        return attention

    def _feed_forward(self, name, width):
        kind, options = FeedForward, {}
        if self.num_experts is not None:
            kind = MixtureOfExperts
            options = {
                "num_experts": self.num_experts,
                "num_experts_per_tok": self.num_experts_per_tok,
                "router_aux_loss_coef": self.router_aux_loss_coef,
            }
        feed_forward = kind(
            self.intermediate_dim,
            activation=self.activation,
            gated=self.gated,
            gate_limit=self.gate_limit,
            dropout=self.activation_dropout,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
            **options,
        )
        feed_forward.build((None, None, width))
        return feed_forward

    def _around_self_attention(self, width):
        return self._residual(
            "around_attention", width, not self.skip_first_norm
        )

    def _residual(self, name, width, normalize_input=True):
        residual = Residual(
            dropout=self.dropout,
            normalize_first=self.normalize_first,
            epsilon=self.epsilon,
            normalization=self.normalization,
            normalize_output=self.normalize_output,
            normalize_input=normalize_input,
            layer_scale=self.layer_scale,
            stochastic_depth=self.stochastic_depth,
            dtype=self.dtype_policy,
            name=name,
        )
        residual.build((None, None, width))
        return residual

    @staticmethod
    def _prepare_inputs(name, inputs, mask, positions, segment_ids):
        """Zeros the padding of the inputs and returns their positions."""
        checks.rank(name, checks.floats(name, inputs), 3)
        rows, length, _ = inputs.shape
        prefix = "" if name == "inputs" else f"{name}_"
        for what, given in (
            ("positions", positions),
            ("segment_ids", segment_ids),
        ):
            if given is not None:
                checks.rank(f"{prefix}{what}", given, 2)
                checks.integers(f"{prefix}{what}", given)
                checks.per_token(f"{prefix}{what}", given, rows, length)
        mask = implicit_mask(inputs) if mask is None else mask
        if mask is not None:
            checks.rank(f"{prefix}mask", mask, 2)
            checks.per_token(f"{prefix}mask", mask, rows, length)
            mask = bool_mask(f"{prefix}mask", mask)
        if positions is not None:
            if mask is not None:
                positions = ops.where(mask, positions, -1)
        elif segment_ids is not None:
            positions = packed_positions(segment_ids, mask)
        elif mask is not None:
            positions = positions_from_mask(mask)
        if positions is not None:
            inputs = ops.where(positions[..., None] >= 0, inputs, 0)
        return inputs, positions

    def _apply_network(self, x, inputs, training, positions=None):
        """Applies the feed-forward network, the last sublayer.

        Args:
            x: float (B, T, D), the output of the sublayers before.
            inputs: float (B, T, D), the inputs of the block.
            training: bool. Whether to apply dropout.
            positions: int32 (B, T) or (1, T), -1 at padding, or None: there is
                none.
        """
        read = inputs if self.use_parallel_residual else x
        read = self._around_network.pre(read)
        options = {}
        if self.num_experts is not None and positions is not None:
            options["mask"] = ops.broadcast_to(
                positions >= 0, ops.shape(read)[:2]
            )
        network = self._network(read, training=training, **options)
        return self._around_network.post(x, network, training=training)

    def compute_output_shape(
        self, inputs_shape: Shape, *args: Any, **kwargs: Any
    ) -> Shape:
        """Returns the shape of the inputs."""
        return inputs_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config() | self._block_config.get_config()
        for name in ("kernel_initializer", "bias_initializer"):
            config[name] = keras.initializers.serialize(getattr(self, name))
        config["attention_position"] = serialized_position(
            self.attention_position
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the block and its attention position."""
        return super().from_config(with_position(config))
