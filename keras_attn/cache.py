"""F2: the keys and values a decoder keeps, as plain tensors."""

from typing import Any, NamedTuple

from keras import ops, tree

from keras_attn.backend import take_rows, write_rows


class KVCache(NamedTuple):
    """Holds projected keys and values of every layer, one slot a token.

    A plain nest of tensors: it goes through compiled loops as it is. Only the
    functions of this module touch its fields. Each of them consumes the cache
    it is given: the old one must not be used again.

    Args:
        keys: tuple, one float (R, L, K, H) a layer.
        values: tuple, one float (R, L, K, W) a layer.
        positions: int32 (R, L), -1 where no token is written.
        cursor: int32 scalar. The next free slot.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> len(cache.keys), tuple(cache.keys[0].shape), int(cache.cursor)
        (3, (2, 8, 4, 16), 0)
    """

    keys: Any
    values: Any
    positions: Any
    cursor: Any


def empty(rows, length, layers, heads, key_dim, value_dim, dtype):
    """Allocates a cache of `length` slots in which nothing is written."""
    return KVCache(
        keys=tuple(
            ops.zeros((rows, length, heads, key_dim), dtype)
            for _ in range(layers)
        ),
        values=tuple(
            ops.zeros((rows, length, heads, value_dim), dtype)
            for _ in range(layers)
        ),
        positions=ops.full((rows, length), -1, dtype="int32"),
        cursor=ops.zeros((), dtype="int32"),
    )


def full(keys, values, positions):
    """Wraps keys and values that are all there: the memory of a decoder."""
    length = ops.shape(positions)[1]
    return KVCache(
        tuple(keys),
        tuple(values),
        positions,
        ops.convert_to_tensor(length, dtype="int32"),
    )


def open_slots(cache, count):
    """Gives the next `count` slots to tokens that follow the written ones.

    Returns:
        The positions of the new tokens, int32 (R, count), and the cache.
    """
    written = ops.sum(ops.cast(cache.positions >= 0, "int32"), axis=1)
    fresh = written[:, None] + ops.arange(count, dtype="int32")[None]
    positions = write_rows(cache.positions, fresh, cache.cursor)
    return fresh, cache._replace(positions=positions)


def append(cache, layer, keys, values):
    """Writes one layer's keys and values (R, T, K, H) into the open slots."""
    written_keys = write_rows(cache.keys[layer], keys, cache.cursor)
    written_values = write_rows(cache.values[layer], values, cache.cursor)
    return cache._replace(
        keys=_with(cache.keys, layer, written_keys),
        values=_with(cache.values, layer, written_values),
    )


def close_slots(cache, count):
    """Moves the cursor past the slots that every layer has now written."""
    return cache._replace(cursor=cache.cursor + count)


def read(cache, layer):
    """Returns one layer's keys, values and the positions of its slots."""
    return cache.keys[layer], cache.values[layer], cache.positions


def reorder(hypothesis, rows):
    """Takes the given rows, int32 (R',): beam search keeps some hypotheses.

    Args:
        hypothesis: nest of tensors with R rows each, such as a `KVCache`,
            consumed. What has no axis is shared by all rows and stays.
        rows: int32 (R',), in [0, R); a row may be taken more than once.

    Returns:
        The nest, with R' rows.
    """

    def taken(tensor):
        # Not the shape itself: TensorFlow's is true where it is known.
        scalar = len(tensor.shape) == 0
        return tensor if scalar else take_rows(tensor, rows)

    return tree.map_structure(taken, hypothesis)


def resized(hypothesis, length):
    """Gives the caches in a nest more slots, in which nothing is written.

    A step costs what all slots cost, those that are not written included: a
    loop that may become long begins with few of them.

    Args:
        hypothesis: nest of tensors that holds `KVCache`s, consumed. What is no
            part of one stays.
        length: int. Slots of each cache, at least as many as it has.

    Returns:
        The nest, with caches of `length` slots.

    Raises:
        ValueError: a cache has more slots than that.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> cache, other = keras_attn.cache.resized((cache, "other"), 32)
        >>> tuple(cache.positions.shape), other
        ((2, 32), 'other')
    """

    def grown(part):
        if not isinstance(part, KVCache):
            return None  # its parts, then
        present = part.positions.shape[1]
        if present > length:
            raise ValueError(
                "`length` must not be less than the slots that are there, "
                f"{present}. Received: length={length}"
            )
        extra = length - present

        def padded(tensor, fill=0):
            width = ((0, 0), (0, extra), *[(0, 0)] * (len(tensor.shape) - 2))
            return ops.pad(tensor, width, constant_values=fill)

        if not extra:
            return part
        return part._replace(
            keys=tuple(map(padded, part.keys)),
            values=tuple(map(padded, part.values)),
            positions=padded(part.positions, fill=-1),
        )

    return tree.traverse(grown, hypothesis)


def _with(items, index, item):
    return (*items[:index], item, *items[index + 1 :])
