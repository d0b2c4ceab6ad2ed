"""What a position handed to an attention layer has to offer."""

import keras


@keras.saving.register_keras_serializable(package="keras_attn")
class AttentionPosition(keras.layers.Layer):
    """Tells an attention where its queries and keys stand.

        score[t, s] = rotate(q_t, p_t) . rotate(k_s, p_s) / sqrt(H)
                      + bias(p_t, p_s)

    Abstract: a subclass overrides `rotate`, or `bias`, or `relate` where the
    bias depends on the queries too, and `check` where not every attention will
    do. It is not called itself; the attention
    asks it, each time with explicit positions, so that a full pass, a cached
    step, a padded row and a packed one agree. One object may serve several
    layers, which then share its weights.

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

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # Nothing depends on the shape of an input: all weights are made in the
        # constructor, before a file is read.
        self.built = True

    def check(self, num_heads, key_dim):
        """Raises ValueError where the position does not fit an attention.

        Args:
            num_heads: int. N of the attention.
            key_dim: int. H of the attention.

        Raises:
            ValueError: never here; where a subclass says so.
        """

    def rotate(self, x, positions):
        """Turns projected queries or keys; here it leaves them alone.

        Args:
            x: float (B, T, N, H).
            positions: int32 (B, T), a size-1 batch axis allowed; -1 = no token.

        Returns:
            Float (B, T, N, H), in the dtype of `x`, finite where `x` is.
        """
        return x

    def bias(self):
        """Returns what is added to the scores: here nothing.

        Returns:
            A `keras_attn.ops.PositionBias`, or None.
        """
        return None

    def relate(self, query, visibility, keys):
        """Prepares the queries of an attention; here it leaves them alone.

        Args:
            query: float (B, T, N, H), behind `rotate`.
            visibility: `keras_attn.ops.Visibility`, in which the positions of
                queries and keys stand.
            keys: int or scalar tensor. S.

        Returns:
            The queries (B, T, N, H) to be compared with the keys, and what is
            added to the scores: a `PositionBias`, a float tensor (B, N, T, S)
            or None; here what `bias` returns.
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


def check_position(position, name="attention_position"):
    """Returns `position` where it is an `AttentionPosition`, else raises."""
    if not isinstance(position, AttentionPosition):
        raise ValueError(
            f"`{name}` must be an AttentionPosition, such as "
            f"RotaryPosition(). Received: {name}={position!r}"
        )
    return position


def serialized_position(position):
    """Returns what a config holds of the position of a layer, or None."""
    if position is None:
        return None
    # Twice: in a file, Keras marks what several layers share from its second
    # time on, and marks the first time afterwards, in a dict of which the file
    # has got a copy by then.
    keras.saving.serialize_keras_object(position)
    return keras.saving.serialize_keras_object(position)


def with_position(config, *names):
    """Returns a config in which the positions are layers again.

    Args:
        config: dict.
        *names: str. What is a position in it; default `"attention_position"`.
    """
    restored = {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names or ("attention_position",)
        if isinstance(config.get(name), dict)
    }
    return config | restored
