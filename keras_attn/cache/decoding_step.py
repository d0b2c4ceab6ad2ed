"""Values that the layers of a model share in one decoding step."""

from typing import Any, NamedTuple


class DecodingStep(NamedTuple):
    """Values that all blocks of a model share in one decoding step.

    Args:
        positions: int32 (R, T), the positions of the new tokens, from
            `open_slots`.
        memory: `KVCache` of the projected memory, read-only; () without one.
        weights: tuple with the result of `prepare_weights` of each block; ():
            the blocks use their own weights.
        lengths: int32 (R, 1), the lengths of the sequences in tokens, if they
            exceed the last of the positions; (): they do not.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 1, 4, 4, 4, "float32")
        >>> layer = keras_attn.layers.MultiHeadAttention(4, 4)
        >>> x = keras.random.normal((2, 1, 16), seed=0)
        >>> layer.build(x.shape, x.shape)
        >>> positions, cache = keras_attn.cache.open_slots(cache, 1)
        >>> step = keras_attn.cache.DecodingStep(positions)
        >>> y, cache = layer.decode_step(x, cache, layer=0, step=step)
        >>> tuple(y.shape)
        (2, 1, 16)
    """

    positions: Any
    memory: Any = ()
    weights: Any = ()
    lengths: Any = ()
