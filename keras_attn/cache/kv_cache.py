"""F2: the keys and values a decoder keeps, as plain tensors."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import (
    KEY_SLOTS_AXIS,
    VALUE_SLOTS_AXIS,
    keys_by_head,
    keys_by_slot,
    no_keys,
    no_values,
    values_by_head,
    values_by_slot,
    write_rows,
)
from keras_attn.ops import positions_from_mask


class KVCache(NamedTuple):
    """Holds projected keys and values of every layer, one slot a token.

    A plain nest of tensors: it goes through compiled loops as it is. Only the
    functions of this module touch its fields. Each of them consumes the cache
    it is given: the old one must not be used again.

    Where a source has k hypotheses, R = B k rows, each of its L slots is k
    slots side by side, one of each. What a hypothesis has written stays where
    it is: when a search goes on from another one, only the table of who wrote
    what changes, and the hypotheses of a source are queries to all its k L
    slots.

    Each head of a row is a matrix, just as products take it: otherwise a
    compiler copies or turns the whole cache at every step.

    Args:
        keys: tuple, one float (B K, H, k L) a layer; on PyTorch
            (B K, k L, H).
        values: tuple, one float (B K, k L, W) a layer.
        positions: int32 (B, k L), -1 where no token is written.
        origins: int32 (B, k, L). Which of the k hypotheses of the source wrote
            what this one sees in a slot; (): there is one of each source.
        cursor: int32 scalar. The next free of the L slots.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> len(cache.values), tuple(cache.values[0].shape), int(cache.cursor)
        (3, (8, 8, 16), 0)
    """

    keys: Any
    values: Any
    positions: Any
    origins: Any
    cursor: Any


def empty(rows, length, layers, heads, key_dim, value_dim, dtype):
    """Allocates a cache in which nothing is written.

    Args:
        rows: int. B, sequences.
        length: int. L, the slots of each.
        layers: int. Layers whose keys and values are kept.
        heads: int. K, heads of keys and values.
        key_dim: int. H, features of a key.
        value_dim: int. W, features of a value.
        dtype: str. Of keys and values: "float32", "float16" or "bfloat16".

    Returns:
        `KVCache`, its cursor at 0 and no slot with a position.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> keras_attn.cache.slots(cache), int(keras_attn.cache.sources(cache))
        (8, 2)
    """
    return KVCache(
        keys=tuple(
            no_keys(rows, heads, length, key_dim, dtype) for _ in range(layers)
        ),
        values=tuple(
            no_values(rows, heads, length, value_dim, dtype)
            for _ in range(layers)
        ),
        positions=ops.full((rows, length), -1, dtype="int32"),
        origins=(),
        cursor=ops.zeros((), dtype="int32"),
    )


def from_projections(keys, values, positions):
    """Wraps keys and values that are all there: the memory of a decoder.

    Args:
        keys: list, one float (B, L, K, H) a layer.
        values: list, one float (B, L, K, W) a layer.
        positions: int32 (B, L), -1 = no token.

    Returns:
        `KVCache`, all of whose slots are written.

    Examples:
        >>> keys, values = np.ones((2, 5, 4, 16)), np.ones((2, 5, 4, 8))
        >>> positions = np.array([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]], "int32")
        >>> cache = keras_attn.cache.from_projections(
        ...     [keys], [values], positions)
        >>> keys, values, positions = keras_attn.cache.read(cache, 0, 4)
        >>> tuple(keys.shape), tuple(values.shape), int(cache.cursor)
        ((2, 5, 4, 16), (2, 5, 4, 8), 5)
    """
    length = ops.shape(positions)[1]
    return KVCache(
        tuple(map(keys_by_head, keys)),
        tuple(map(values_by_head, values)),
        positions,
        (),
        ops.convert_to_tensor(length, dtype="int32"),
    )


def slots(cache):
    """Says how many slots a cache has for each hypothesis.

    Args:
        cache: `KVCache`.

    Returns:
        int. L, those that are written and those that are not.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> keras_attn.cache.slots(keras_attn.cache.expand_beams(cache, 5))
        8
    """
    return cache.positions.shape[1] // hypotheses(cache)


def sources(cache):
    """Says how many sources a cache serves.

    Args:
        cache: `KVCache`.

    Returns:
        int, or an int32 scalar where it is known at run time only. B, however
        many hypotheses each has.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> cache = keras_attn.cache.expand_beams(cache, 5)
        >>> int(keras_attn.cache.sources(cache))
        2
    """
    return ops.shape(cache.positions)[0]


def open_slots(cache, count, token_mask=None):
    """Gives the next `count` slots to tokens that follow the written ones.

    Args:
        cache: `KVCache`, consumed.
        count: int. T.
        token_mask: bool (R, T), False where there is no token, as in the
            prompts of a batch that are shorter than the longest. Default: all
            there.

    Returns:
        The positions of the new tokens, int32 (R, T), -1 where there is none,
        and the cache.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 1, 4, 16, 16, "float32")
        >>> there = np.array([[True, True, True], [True, True, False]])
        >>> positions, cache = keras_attn.cache.open_slots(cache, 3, there)
        >>> keras.ops.convert_to_numpy(positions).tolist()
        [[0, 1, 2], [0, 1, -1]]
    """
    width = hypotheses(cache)
    used = cache.positions >= 0
    if width > 1:
        used = ops.logical_and(used[:, None], _seen(cache))
    written = ops.sum(ops.cast(used, "int32"), axis=-1)
    if token_mask is None:
        fresh = written[..., None] + ops.arange(count, dtype="int32")
        fresh = ops.reshape(fresh, (-1, count))
    else:
        fresh = positions_from_mask(token_mask)
        before = ops.reshape(written, (-1, 1))
        fresh = ops.where(fresh >= 0, before + fresh, -1)
    added = _side_by_side(ops.reshape(fresh, (-1, width * count)), width)
    positions = write_rows(cache.positions, added, cache.cursor * width)
    if width > 1:
        own = ops.arange(width, dtype="int32")[None, :, None]
        own = own + ops.zeros_like(cache.origins[:, :, :count])
        origins = write_rows(cache.origins, own, cache.cursor, axis=2)
        cache = cache._replace(origins=origins)
    return fresh, cache._replace(positions=positions)


def append(cache, layer, keys, values):
    """Writes one layer's keys and values into the open slots.

    Args:
        cache: `KVCache`, consumed.
        layer: int.
        keys: float (B, k T, K, H), the T tokens of each of the k hypotheses.
        values: float (B, k T, K, W).

    Returns:
        The cache.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 1, 4, 16, 16, "float32")
        >>> _, cache = keras_attn.cache.open_slots(cache, 1)
        >>> token = keras.ops.ones((2, 1, 4, 16))
        >>> cache = keras_attn.cache.append(cache, 0, token, 2 * token)
        >>> cache = keras_attn.cache.close_slots(cache, 1)
        >>> keys, values, positions = keras_attn.cache.read(cache, 0, 4)
        >>> keras.ops.convert_to_numpy(values)[0, :, 0, 0].tolist()
        [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        >>> keras.ops.convert_to_numpy(positions)[0].tolist()
        [0, -1, -1, -1, -1, -1, -1, -1]
    """
    width = hypotheses(cache)

    def written(buffers, fresh, axis):
        start = cache.cursor * width
        buffer = write_rows(buffers[layer], fresh, start, axis)
        return (*buffers[:layer], buffer, *buffers[layer + 1 :])

    keys, values = (_side_by_side(fresh, width) for fresh in (keys, values))
    return cache._replace(
        keys=written(cache.keys, keys_by_head(keys), KEY_SLOTS_AXIS),
        values=written(cache.values, values_by_head(values), VALUE_SLOTS_AXIS),
    )


def close_slots(cache, count):
    """Moves the cursor past the slots that every layer has now written.

    Args:
        cache: `KVCache`, consumed.
        count: int. T, the tokens that were appended.

    Returns:
        The cache.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> int(keras_attn.cache.close_slots(cache, 2).cursor)
        2
    """
    return cache._replace(cursor=cache.cursor + count)


def read(cache, layer, heads):
    """Returns one layer's keys, values and the positions of its slots.

    In a `expand_beams` cache these are the slots of all hypotheses of a source:
    what one of them may see says `beam_mask`.

    Args:
        cache: `KVCache`.
        layer: int.
        heads: int. K, of the keys and values in it.

    Returns:
        Float (B, k L, K, H), float (B, k L, K, W) and int32 (B, k L).

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 32, "float32")
        >>> keys, values, positions = keras_attn.cache.read(cache, 1, 4)
        >>> tuple(keys.shape), tuple(values.shape), tuple(positions.shape)
        ((2, 8, 4, 16), (2, 8, 4, 32), (2, 8))
    """
    return (
        keys_by_slot(cache.keys[layer], heads),
        values_by_slot(cache.values[layer], heads),
        cache.positions,
    )


def beam_mask(cache, count):
    """Says which slots of a source are part of a hypothesis.

    Args:
        cache: `KVCache`.
        count: int. T, tokens of each hypothesis.

    Returns:
        Bool (B, 1, k T, k L), or None: all of them.

    Examples:
        >>> cache = keras_attn.cache.empty(1, 2, 1, 4, 16, 16, "float32")
        >>> print(keras_attn.cache.beam_mask(cache, 1))
        None
        >>> cache = keras_attn.cache.expand_beams(cache, 2)
        >>> seen = keras_attn.cache.beam_mask(cache, 1)
        >>> keras.ops.convert_to_numpy(seen)[0, 0].astype(int).tolist()
        [[1, 0, 1, 0], [0, 1, 0, 1]]
    """
    if hypotheses(cache) == 1:
        return None
    return ops.repeat(_seen(cache), count, axis=1)[:, None]


def hypotheses(cache):
    """Returns how many hypotheses each source of a cache has, int: k."""
    return 1 if isinstance(cache.origins, tuple) else cache.origins.shape[1]


def _seen(cache):
    """Says whether a hypothesis sees what stands in a slot, (B, k, k L)."""
    rows, width, length = ops.shape(cache.origins)
    writers = ops.arange(width, dtype="int32")
    seen = ops.equal(cache.origins[..., None], writers)
    return ops.reshape(seen, (rows, width, length * width))


def _side_by_side(fresh, width):
    """Puts the k hypotheses of each of T tokens together: (B, k T, ...)."""
    if fresh.shape[1] == width:
        return fresh
    rows, count, *rest = ops.shape(fresh)
    fresh = ops.reshape(fresh, (rows, width, count // width, *rest))
    return ops.reshape(ops.swapaxes(fresh, 1, 2), (rows, count, *rest))
