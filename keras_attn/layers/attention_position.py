"""Base class of position encodings inside attention."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

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

    @property
    def depends_on_length(self) -> bool:
        """Whether `rotate` takes the lengths of sequences. Default: False.

        The attention layer then passes int32 (B, T), size-1 axes allowed, as
        `lengths`: for each token, the number of tokens of its sequence.
        """
        return False

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


# One for all layers of a model, or one for each.
LayerPositions: TypeAlias = (
    AttentionPosition | Sequence[AttentionPosition | None] | None
)


def layer_positions(
    position: LayerPositions,
    num_layers: int,
    name: str = "attention_position",
) -> tuple["AttentionPosition | None", ...]:
    """Returns the position of each layer of a model.

    Args:
        position: `AttentionPosition` of all layers, a list with one or None for
            each, or None.
        num_layers: int.
        name: str. Name of the argument. Default `"attention_position"`.

    Raises:
        ValueError: another type, or another number of layers.
    """
    if position is None:
        return (None,) * num_layers
    if not isinstance(position, (list, tuple)):
        return (check_position(position, name),) * num_layers
    if len(position) != num_layers:
        raise ValueError(
            f"`{name}` must be one position, or a list with one for each of "
            f"the {num_layers} layers. Received: {len(position)} positions"
        )
    for one in position:
        if one is not None:
            check_position(one, name)
    return tuple(position)


def as_attribute(position: Any) -> Any:
    """Returns a position, or a tuple of positions for a list."""
    return tuple(position) if isinstance(position, list) else position


def serialized_position(position: Any) -> dict[str, Any] | None:
    """Returns the config entry for the position of a layer or of layers.

    Args:
        position: `AttentionPosition`, a tuple with one or None for each layer,
            or None. Layers that share a position still share it in a model
            created from the config.
    """
    if position is None:
        return None
    if isinstance(position, tuple):
        distinct = list({id(one): one for one in position if one}.values())
        layers = [
            None if one is None else [o is one for o in distinct].index(True)
            for one in position
        ]
        positions = [serialized_position(one) for one in distinct]
        return {"layers": layers, "positions": positions}
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
        name: _deserialized(config[name])
        for name in names or ("attention_position",)
        if isinstance(config.get(name), dict)
    }
    return config | restored


def _deserialized(entry):
    if "positions" not in entry:
        return keras.saving.deserialize_keras_object(entry)
    positions = [
        keras.saving.deserialize_keras_object(one) for one in entry["positions"]
    ]
    return [None if i is None else positions[i] for i in entry["layers"]]
