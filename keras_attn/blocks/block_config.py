"""Hyperparameters that the blocks of a model share."""

import dataclasses
from typing import Any, Self

import keras

from keras_attn import checks
from keras_attn.layers.mixture_of_experts import check_experts
from keras_attn.layers.multi_head_attention import QK_NORMS
from keras_attn.layers.normalization import check_normalization
from keras_attn.layers.position_wise_network import check_gate_limit
from keras_attn.typing import Activation


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """Hyperparameters that all Transformer blocks of a model share.

    Blocks and models build it from their keyword arguments. A model takes the
    fields that are not in its signature from its `**kwargs`, so a new field
    needs no change in a model.

    Args:
        num_heads: int >= 1. N.
        intermediate_dim: int >= 1. Width inside the feed-forward network.
        key_dim: int >= 1. H, features per head. Default None: D / N.
        num_key_value_heads: int dividing N. K, key and value heads, shared by
            groups of query heads. Default None: N.
        dropout: float in [0, 1). On the output of each sublayer.
        attention_dropout: float in [0, 1). On the attention weights.
        activation_dropout: float in [0, 1). Inside the feed-forward network.
        activation: name or callable. Default `"relu"`.
        gated: bool. Gated feed-forward network. Default False.
        gate_limit: float > 0. Limit of the gated network, as in `FeedForward`.
            Default None.
        normalize_first: bool. Pre-norm instead of post-norm. Default False.
        epsilon: float. Added to the variance in the layer norms.
        use_bias: bool. Biases in projections and dense layers. Default True.
        sliding_window: int >= 1. The self-attention masks keys at this distance
            or further. Default None: no window. A tuple has one value for each
            layer of a model.
        normalization: `"layer_norm"`, `"bias_free_layer_norm"` or
            `"rms_norm"`. Default `"layer_norm"`.
        normalize_output: bool. Normalize the output of each sublayer before it
            is added: with `normalize_first` as in Gemma 2, without as in
            OLMo 2. Default False.
        use_parallel_residual: bool. The feed-forward network reads the inputs
            of the block, not the attention's output, as in GPT-NeoX; requires
            `normalize_first`. Default False.
        qk_norm: `"head"` or `"all_heads"`. RMS norm of queries and keys, as in
            `MultiHeadAttention`. Default None.
        attention_soft_cap: float > 0. Bound of the attention scores, as in
            Gemma 2. Default None.
        use_sinks: bool. Attention sinks, as in gpt-oss. Default False.
        layer_scale: float > 0. Initial value of a learned factor per feature of
            each sublayer's output (Touvron et al. 2021,
            https://arxiv.org/abs/2103.17239), as in DINOv2. Default None: no
            factor.
        stochastic_depth: float in [0, 1). Probability that a row skips a
            sublayer in training (Huang et al. 2016,
            https://arxiv.org/abs/1603.09382). Default 0.0.
        use_qkv_bias: bool. Biases in the projections of queries, keys and
            values, as in Qwen 2. Default None: `use_bias`.
        skip_first_norm: bool. The self-attention of the first layer reads its
            inputs without a norm, as in ModernBERT, whose embeddings are
            normalized; requires `normalize_first`. Default False.
        num_experts: int >= 1. The feed-forward network is a mixture of so many
            networks, a `MixtureOfExperts`. Default None: one network.
        num_experts_per_tok: int in [1, num_experts]. Experts for each token.
            Default 2.
        router_aux_loss_coef: float >= 0. Factor of the load-balancing loss that
            each block with experts adds in training. Default 0.01.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> from keras_attn.blocks.block_config import BlockConfig
        >>> config = BlockConfig(num_heads=2, intermediate_dim=32)
        >>> config.head_dim(8), config.key_value_heads
        (4, 2)
    """

    num_heads: int
    intermediate_dim: int
    key_dim: int | None = None
    num_key_value_heads: int | None = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: Activation = "relu"
    gated: bool = False
    normalize_first: bool = False
    epsilon: float = 1e-5
    use_bias: bool = True
    sliding_window: int | tuple[int | None, ...] | None = None
    normalization: str = "layer_norm"
    normalize_output: bool = False
    use_parallel_residual: bool = False
    qk_norm: str | None = None
    attention_soft_cap: float | None = None
    use_sinks: bool = False
    layer_scale: float | None = None
    stochastic_depth: float = 0.0
    gate_limit: float | None = None
    use_qkv_bias: bool | None = None
    skip_first_norm: bool = False
    num_experts: int | None = None
    num_experts_per_tok: int = 2
    router_aux_loss_coef: float = 0.01

    def __post_init__(self) -> None:
        for name in ("num_heads", "intermediate_dim"):
            checks.positive_int(name, getattr(self, name))
        for name in ("key_dim", "num_key_value_heads"):
            if getattr(self, name) is not None:
                checks.positive_int(name, getattr(self, name))
        if isinstance(self.sliding_window, list):
            object.__setattr__(
                self, "sliding_window", tuple(self.sliding_window)
            )
        for window in self._windows:
            if window is not None:
                checks.positive_int("sliding_window", window)
        if self.num_heads % self.key_value_heads:
            raise ValueError(
                "`num_heads` must be a multiple of `num_key_value_heads`. "
                f"Received: num_heads={self.num_heads}, "
                f"num_key_value_heads={self.num_key_value_heads}"
            )
        for name in (
            "dropout",
            "attention_dropout",
            "activation_dropout",
            "stochastic_depth",
        ):
            checks.fraction(name, getattr(self, name))
        if self.layer_scale is not None:
            checks.positive("layer_scale", self.layer_scale)
        checks.positive("epsilon", self.epsilon)
        for name in (
            "gated",
            "normalize_first",
            "use_bias",
            "normalize_output",
            "use_parallel_residual",
            "use_sinks",
            "skip_first_norm",
        ):
            checks.boolean(name, getattr(self, name))
        if self.use_qkv_bias is not None:
            checks.boolean("use_qkv_bias", self.use_qkv_bias)
        check_experts(
            self.num_experts,
            self.num_experts_per_tok,
            self.router_aux_loss_coef,
        )
        check_normalization(self.normalization)
        check_gate_limit(self.gate_limit, self.gated)
        checks.choice("qk_norm", self.qk_norm, (None, *QK_NORMS))
        if self.attention_soft_cap is not None:
            checks.positive("attention_soft_cap", self.attention_soft_cap)
        if self.use_parallel_residual and not self.normalize_first:
            raise ValueError(
                "`use_parallel_residual` requires `normalize_first`. "
                "Received: use_parallel_residual=True, normalize_first=False"
            )
        if self.skip_first_norm and not self.normalize_first:
            raise ValueError(
                "`skip_first_norm` requires `normalize_first`. "
                "Received: skip_first_norm=True, normalize_first=False"
            )
        activation = keras.activations.get(self.activation)
        object.__setattr__(self, "activation", activation)

    @classmethod
    def with_options(cls, kwargs: dict[str, Any], **fields: Any) -> Self:
        """Creates a config, and removes its other fields from a dict.

        Args:
            kwargs: dict, the `**kwargs` of a model. Fields are removed from it.
            **fields: fields in the model's signature.
        """
        names = {field.name for field in dataclasses.fields(cls)} - set(fields)
        options = {name: kwargs.pop(name) for name in names & kwargs.keys()}
        return cls(**fields, **options)

    @property
    def _windows(self):
        several = isinstance(self.sliding_window, tuple)
        return self.sliding_window if several else (self.sliding_window,)

    @property
    def needs_final_norm(self) -> bool:
        """Whether a stack of such blocks needs a norm after the last one."""
        return self.normalize_first or self.normalize_output

    def check_layers(self, num_layers: int) -> None:
        """Raises ValueError if the windows are not those of `num_layers`."""
        windows = self.sliding_window
        if isinstance(windows, tuple) and len(windows) != num_layers:
            raise ValueError(
                "`sliding_window` must have one value for each of the "
                f"{num_layers} layers. Received: {len(windows)} values"
            )

    def of_layer(self, index: int) -> dict[str, Any]:
        """Returns the keyword arguments of a block, the layer `index`."""
        windows = self._windows
        window = windows[index] if len(windows) > 1 else windows[0]
        return self.as_arguments() | {
            "sliding_window": window,
            "skip_first_norm": self.skip_first_norm and index == 0,
        }

    @property
    def key_value_heads(self) -> int:
        """K, an int."""
        return self.num_key_value_heads or self.num_heads

    def head_dim(
        self, width: int, name: str = "the width of the inputs"
    ) -> int:
        """Returns H.

        Args:
            width: int. D.
            name: str. What `width` is, for the error message.

        Raises:
            ValueError: the number of heads does not divide the width.
        """
        if self.key_dim is not None:
            return self.key_dim
        if width % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide {name} if `key_dim` is not given. "
                f"Received: num_heads={self.num_heads} and {width} features"
            )
        return width // self.num_heads

    def as_arguments(self) -> dict[str, Any]:
        """Returns the fields as a dict of keyword arguments."""
        # Not `dataclasses.asdict`, which copies the values.
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
        }

    def set_attributes(self, layer: Any) -> None:
        """Sets the fields as attributes of a layer or a model."""
        for name, value in self.as_arguments().items():
            setattr(layer, name, value)

    def get_config(self) -> dict[str, Any]:
        """Returns the serializable fields."""
        activation = keras.activations.serialize(self.activation)
        windows = self.sliding_window
        if isinstance(windows, tuple):
            windows = list(windows)
        return self.as_arguments() | {
            "activation": activation,
            "sliding_window": windows,
        }
