"""Base class of position encodings inside attention."""

from typing import TYPE_CHECKING, Any

import keras

from keras_attn.backend import TorchNames
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.position_bias import PositionBias
    from keras_attn.ops.visibility import Visibility


@keras.saving.register_keras_serializable(package="keras_attn")
class AttentionPosition(TorchNames, keras.layers.Layer):
    """Base class of position encodings that act on queries, keys or scores.

        score[t, s] = rotate(q_t, p_t) . rotate(k_s, p_s) / sqrt(H)
                      + bias(p_t, p_s)

    Abstract: a subclass overrides `rotate`, `bias`, or, if the bias depends on
    the queries, `relate`; and `check` if it does not fit every attention layer.
    It has no `call`: the attention layer calls these methods with explicit
    positions, so that full passes, cached steps, padded rows and
    packed rows agree. Layers that are given the same object share its weights.

    Args:
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Examples:
        >>> class Nowhere(keras_attn.layers.AttentionPosition):
        ...     pass
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=2, key_dim=4, attention_position=Nowhere())
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> tuple(layer(x, x).shape)
        (2, 5, 8)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # No weight depends on an input shape: all are created in the
        # constructor, before a file is loaded.
        self.built = True

    def check(self, num_heads: int, key_dim: int) -> None:
        """Raises ValueError if the position does not fit an attention layer.

        Args:
            num_heads: int. N of the attention layer.
            key_dim: int. H of the attention layer.

        Raises:
            ValueError: only in subclasses.
        """

    def rotate(self, x: TensorLike, positions: TensorLike) -> Tensor:
        """Rotates projected queries or keys. Default: returns them unchanged.

        Args:
            x: float (B, T, N, H).
            positions: int32 (B, T), a size-1 batch axis allowed; -1 = no token.

        Returns:
            Float (B, T, N, H), in the dtype of `x`, finite where `x` is finite.
        """
        return x

    def bias(self) -> "PositionBias | None":
        """Returns the bias added to the scores. Default: None.

        Returns:
            A `keras_attn.ops.PositionBias`, or None.
        """
        return None

    def relate(
        self,
        query: TensorLike,
        visibility: "Visibility",
        keys: int | TensorLike,
    ) -> tuple[Tensor, Any]:
        """Prepares the queries and the bias. Default: queries unchanged.

        Args:
            query: float (B, T, N, H), after `rotate`.
            visibility: `keras_attn.ops.Visibility`, with the positions of
                queries and keys.
            keys: int or scalar tensor. S.

        Returns:
            The queries (B, T, N, H) to score against the keys, and the bias
            added to the scores: a `PositionBias`, a float tensor (B, N, T, S)
            or None. Default: the result of `bias`.
        """
        return query, self.bias()

    def _check_heads(self, num_heads):
        if self.num_heads != num_heads:
            raise ValueError(
                f"`attention_position` must have the {num_heads} heads of the "
                "attention. "
                f"Received: {type(self).__name__}"
                f"(num_heads={self.num_heads})"
            )


def check_position(position: Any, name: str = "attention_position") -> Any:
    """Returns `position`, or raises if it is not an `AttentionPosition`."""
    if not isinstance(position, AttentionPosition):
        raise ValueError(
            f"`{name}` must be an AttentionPosition, such as "
            f"RotaryPosition(). Received: {name}={position!r}"
        )
    return position


def serialized_position(position: Any) -> dict[str, Any] | None:
    """Returns the config entry for the position of a layer, or None."""
    if position is None:
        return None
    # Serialized twice: Keras marks an object shared by several layers only from
    # its second occurrence on, and marks the first one afterwards, in a dict
    # that has been copied by then (as of Keras 3.15.1).
    keras.saving.serialize_keras_object(position)
    return keras.saving.serialize_keras_object(position)


def with_position(config: dict[str, Any], *names: Any) -> dict[str, Any]:
    """Returns a config with deserialized positions.

    Args:
        config: dict.
        *names: str. Keys of the positions. Default: `"attention_position"`.
    """
    restored = {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names or ("attention_position",)
        if isinstance(config.get(name), dict)
    }
    return config | restored
