"""Hyperparameters that the blocks of a model share."""

import dataclasses
from typing import Any, Self

import keras

from keras_attn import checks


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
        normalize_first: bool. Pre-norm instead of post-norm. Default False.
        epsilon: float. Added to the variance in the layer norms.
        use_bias: bool. Biases in projections and dense layers. Default True.
        sliding_window: int >= 1. The self-attention masks keys at this distance
            or further. Default None: no window.

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
    activation: Any = "relu"
    gated: bool = False
    normalize_first: bool = False
    epsilon: float = 1e-5
    use_bias: bool = True
    sliding_window: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_heads", "intermediate_dim"):
            checks.positive_int(name, getattr(self, name))
        for name in ("key_dim", "num_key_value_heads", "sliding_window"):
            if getattr(self, name) is not None:
                checks.positive_int(name, getattr(self, name))
        if self.num_heads % self.key_value_heads:
            raise ValueError(
                "`num_heads` must be a multiple of `num_key_value_heads`. "
                f"Received: num_heads={self.num_heads}, "
                f"num_key_value_heads={self.num_key_value_heads}"
            )
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            checks.fraction(name, getattr(self, name))
        checks.positive("epsilon", self.epsilon)
        for name in ("gated", "normalize_first", "use_bias"):
            checks.boolean(name, getattr(self, name))
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
        return self.as_arguments() | {"activation": activation}
