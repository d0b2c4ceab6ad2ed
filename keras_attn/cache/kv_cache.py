"""Key-value cache as a named tuple of tensors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import ops

from keras_attn import checks
from keras_attn.backend import (
    KEY_SLOTS_AXIS,
    VALUE_SLOTS_AXIS,
    bool_mask,
    cached_heads,
    full,
    keys_by_head,
    keys_by_slot,
    no_keys,
    no_values,
    values_by_head,
    values_by_slot,
    write_rows,
)
from keras_attn.cache.arguments import (
    check_features,
    check_layer,
    check_projections,
    check_size,
)
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Tensor, TensorLike


class KVCache(NamedTuple):
    """Projected keys and values of every layer, one slot per token.

    A nest of tensors, which can be carried through compiled loops. Only the
    functions of this package access its fields. They consume the cache that
    they are given: it must not be used again.

    If each source has k hypotheses, R = B k rows in all, each of its L slots is
    k adjacent slots, one per hypothesis. Written keys and values never move:
    when a beam continues another hypothesis, only `origins` changes. The
    hypotheses of a source are queries to all of its k L slots.

    Each head of a row is stored as a matrix, as products need it: otherwise XLA
    would copy or transpose the whole cache at every step. Under
    `keras.distribution` on JAX, B K is two axes, each split over the devices of
    one mesh axis.

    Args:
        keys: tuple of float (B K, H, k L), one per layer; on PyTorch
            (B K, k L, H).
        values: tuple of float (B K, k L, W), one per layer.
        positions: int32 (B, k L), -1 in empty slots and for padding.
        origins: int32 (B, k, L). Index of the hypothesis that wrote the entry
            that this hypothesis sees in a slot; () with one hypothesis per
            source.
        cursor: int32 scalar. Index of the next free of the L slots. After
            `crop`, int32 (B,): one for each row.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> len(cache.values), tuple(cache.values[0].shape), int(cache.cursor)
        (3, (8, 8, 16), 0)
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    positions: Any
    origins: Any
    cursor: Any


def empty(
    rows: int,
    length: int,
    layers: int,
    heads: int,
    key_dim: int,
    value_dim: int,
    dtype: str,
) -> KVCache:
    """Allocates an empty cache.

    Args:
        rows: int. B, number of sequences.
        length: int. L, number of slots per sequence.
        layers: int. Number of layers.
        heads: int. K, number of key-value heads.
        key_dim: int. H, features per key.
        value_dim: int. W, features per value.
        dtype: str. Dtype of keys and values: "float32", "float16" or
            "bfloat16".

    Returns:
        `KVCache` with its cursor at 0 and all positions -1.

    Raises:
        ValueError: a size that is no integer or too large, or another dtype.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> keras_attn.cache.slots(cache), int(keras_attn.cache.sources(cache))
        (8, 2)
    """
    check_size(rows, length, layers, heads, key_dim, value_dim, dtype)
    return KVCache(
        keys=tuple(
            no_keys(rows, heads, length, key_dim, dtype) for _ in range(layers)
        ),
        values=tuple(
            no_values(rows, heads, length, value_dim, dtype)
            for _ in range(layers)
        ),
        positions=full((rows, length), -1, dtype="int32"),
        origins=(),
        cursor=ops.zeros((), dtype="int32"),
    )


def from_projections(
    keys: Sequence[TensorLike],
    values: Sequence[TensorLike],
    positions: TensorLike,
) -> KVCache:
    """Creates a full cache, such as a decoder's projected memory.

    Args:
        keys: list of float (B, L, K, H), one per layer.
        values: list of float (B, L, K, W), one per layer.
        positions: int32 (B, L), -1 for padding.

    Returns:
        `KVCache` in which all slots are written.

    Raises:
        ValueError: tensors of other shapes or dtypes.

    Examples:
        >>> keys, values = np.ones((2, 5, 4, 16)), np.ones((2, 5, 4, 8))
        >>> positions = np.array([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]], "int32")
        >>> cache = keras_attn.cache.from_projections(
        ...     [keys], [values], positions)
        >>> keys, values, positions = keras_attn.cache.read(cache, 0, 4)
        >>> tuple(keys.shape), tuple(values.shape), int(cache.cursor)
        ((2, 5, 4, 16), (2, 5, 4, 8), 5)
    """
    check_projections(keys, values, positions)
    length = ops.shape(positions)[1]
    return KVCache(
        tuple(map(keys_by_head, keys)),
        tuple(map(values_by_head, values)),
        positions,
        (),
        ops.convert_to_tensor(length, dtype="int32"),
    )


def slots(cache: KVCache) -> int:
    """Returns the number of slots per hypothesis.

    Args:
        cache: `KVCache`.

    Returns:
        int. L, written and free slots.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> keras_attn.cache.slots(keras_attn.cache.expand_beams(cache, 5))
        8
    """
    _check(cache)
    return cache.positions.shape[1] // hypotheses(cache)


def free_slots(cache: KVCache) -> Tensor:
    """Returns how many slots are not written yet.

    Args:
        cache: `KVCache`.

    Returns:
        int32 scalar; after `crop`, int32 (B,).

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> int(keras_attn.cache.free_slots(cache))
        8
    """
    return slots(cache) - cache.cursor


def sources(cache: KVCache) -> int:
    """Returns the number of sources.

    Args:
        cache: `KVCache`.

    Returns:
        int, or an int32 scalar if it is known only at run time. B, regardless
        of the number of hypotheses.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> cache = keras_attn.cache.expand_beams(cache, 5)
        >>> int(keras_attn.cache.sources(cache))
        2
    """
    _check(cache)
    return ops.shape(cache.positions)[0]


def open_slots(
    cache: KVCache, count: int, token_mask: TensorLike | None = None
) -> tuple[Tensor, KVCache]:
    """Assigns the next `count` slots to new tokens.

    Args:
        cache: `KVCache`, consumed.
        count: int. T.
        token_mask: bool (R, T), True for tokens, False for padding, as in
            prompts shorter than the longest. Default: no padding.

    Returns:
        The positions of the new tokens, int32 (R, T), -1 for padding, and the
        cache.

    Raises:
        ValueError: more tokens than slots, or a mask of another shape.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 1, 4, 16, 16, "float32")
        >>> there = np.array([[True, True, True], [True, True, False]])
        >>> positions, cache = keras_attn.cache.open_slots(cache, 3, there)
        >>> keras.ops.convert_to_numpy(positions).tolist()
        [[0, 1, 2], [0, 1, -1]]
    """
    _check_open(cache, count, token_mask)
    width = hypotheses(cache)
    used = cache.positions >= 0
    if width > 1:
        used = ops.logical_and(used[:, None], _visible_slots(cache))
    written = ops.sum(ops.cast(used, "int32"), axis=-1)
    if token_mask is None:
        fresh = written[..., None] + ops.arange(count, dtype="int32")
        fresh = ops.reshape(fresh, (-1, count))
    else:
        fresh = positions_from_mask(bool_mask("token_mask", token_mask))
        before = ops.reshape(written, (-1, 1))
        fresh = ops.where(fresh >= 0, before + fresh, -1)
    added = _interleave_beams(ops.reshape(fresh, (-1, width * count)), width)
    positions = write_rows(cache.positions, added, cache.cursor * width)
    if width > 1:
        own = ops.arange(width, dtype="int32")[None, :, None]
        own = own + ops.zeros_like(cache.origins[:, :, :count])
        origins = write_rows(cache.origins, own, cache.cursor, axis=2)
        cache = cache._replace(origins=origins)
    return fresh, cache._replace(positions=positions)


def append(
    cache: KVCache, layer: int, keys: TensorLike, values: TensorLike
) -> KVCache:
    """Writes one layer's keys and values into the open slots.

    Args:
        cache: `KVCache`, consumed.
        layer: int.
        keys: float (B, k T, K, H), T tokens per hypothesis.
        values: float (B, k T, K, W).

    Returns:
        The cache.

    Raises:
        ValueError: no such layer, or other features than those of the cache.

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
    _check_features(cache, layer, keys, values)
    width = hypotheses(cache)

    def written(buffers, fresh, axis):
        start, buffer = cache.cursor * width, buffers[layer]
        axis = axis % len(buffer.shape)
        buffer = write_rows(buffer, fresh, start, axis)
        return (*buffers[:layer], buffer, *buffers[layer + 1 :])

    keys, values = (_interleave_beams(fresh, width) for fresh in (keys, values))
    return cache._replace(
        keys=written(cache.keys, keys_by_head(keys), KEY_SLOTS_AXIS),
        values=written(cache.values, values_by_head(values), VALUE_SLOTS_AXIS),
    )


def close_slots(cache: KVCache, count: int) -> KVCache:
    """Advances the cursor after every layer has written the open slots.

    Args:
        cache: `KVCache`, consumed.
        count: int. T, the number of appended tokens.

    Returns:
        The cache.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> int(keras_attn.cache.close_slots(cache, 2).cursor)
        2
    """
    _check(cache)
    checks.count("count", count, 0)
    return cache._replace(cursor=cache.cursor + count)


def crop(cache: KVCache, count: TensorLike) -> KVCache:
    """Removes the last tokens of each row, a different number of each.

    The rows then have their own cursors, each after the last token of its row:
    the next tokens are written over the removed ones.

    Args:
        cache: `KVCache` with one hypothesis per source, consumed.
        count: int32 (B,), or a scalar: the number of tokens removed.

    Returns:
        The cache.

    Raises:
        ValueError: a cache with several hypotheses per source, or `count` is
            not of integers, or of another shape.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 1, 4, 16, 16, "float32")
        >>> positions, cache = keras_attn.cache.open_slots(cache, 3)
        >>> cache = keras_attn.cache.close_slots(cache, 3)
        >>> cache = keras_attn.cache.crop(cache, np.array([0, 2]))
        >>> keras.ops.convert_to_numpy(cache.cursor).tolist()
        [3, 1]
        >>> positions, cache = keras_attn.cache.open_slots(cache, 1)
        >>> keras.ops.convert_to_numpy(positions).tolist()
        [[3], [1]]
    """
    _check(cache)
    checks.tensor("count", count, "an integer tensor (B,)")
    checks.integers("count", count)
    rows = cache.positions.shape[0]
    if len(count.shape) and not checks.fits(count.shape, (rows,)):
        raise ValueError(
            f"`count` must be a scalar, or have one number for each of the "
            f"{rows} rows of the cache. Received: shape {tuple(count.shape)}"
        )
    if hypotheses(cache) > 1:
        raise ValueError(
            "`cache` must have one hypothesis per source. "
            f"Received: {hypotheses(cache)}"
        )
    positions = cache.positions
    used = ops.cast(positions >= 0, "int32")
    # They count the tokens of a row from 0.
    left = ops.sum(used, axis=1) - ops.cast(count, "int32")
    kept = ops.logical_and(positions >= 0, positions < left[:, None])
    after = ops.arange(positions.shape[1], dtype="int32") + 1
    return cache._replace(
        positions=ops.where(kept, positions, -1),
        cursor=ops.max(ops.where(kept, after, 0), axis=1),
    )


def read(
    cache: KVCache, layer: int, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the keys, values and positions of one layer.

    After `expand_beams` these are the slots of all hypotheses of a source;
    `beam_mask` returns which of them a hypothesis may see.

    Args:
        cache: `KVCache`.
        layer: int.
        heads: int. K, number of key-value heads.

    Returns:
        Float (B, k L, K, H), float (B, k L, K, W) and int32 (B, k L).

    Raises:
        ValueError: no such layer, or another number of heads.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 32, "float32")
        >>> keys, values, positions = keras_attn.cache.read(cache, 1, 4)
        >>> tuple(keys.shape), tuple(values.shape), tuple(positions.shape)
        ((2, 8, 4, 16), (2, 8, 4, 32), (2, 8))
    """
    _check(cache)
    check_layer(layer, len(cache.keys))
    checks.positive_int("heads", heads)
    rows = cache.keys[layer].shape[0]
    if len(cache.keys[layer].shape) == 4:
        rows = cache.keys[layer].shape[1]
    if rows is not None and rows % heads:
        raise ValueError(
            f"`heads` must divide the {rows} rows and heads of the cache. "
            f"Received: heads={heads}"
        )
    return (
        keys_by_slot(cache.keys[layer], heads),
        values_by_slot(cache.values[layer], heads),
        cache.positions,
    )


def beam_mask(cache: KVCache, count: int) -> Tensor | None:
    """Returns which slots of a source belong to each hypothesis.

    Args:
        cache: `KVCache`.
        count: int. T, number of query tokens per hypothesis.

    Returns:
        Bool (B, 1, k T, k L), or None with one hypothesis per source.

    Examples:
        >>> cache = keras_attn.cache.empty(1, 2, 1, 4, 16, 16, "float32")
        >>> print(keras_attn.cache.beam_mask(cache, 1))
        None
        >>> cache = keras_attn.cache.expand_beams(cache, 2)
        >>> seen = keras_attn.cache.beam_mask(cache, 1)
        >>> keras.ops.convert_to_numpy(seen)[0, 0].astype(int).tolist()
        [[1, 0, 1, 0], [0, 1, 0, 1]]
    """
    _check(cache)
    checks.count("count", count, 0)
    if hypotheses(cache) == 1:
        return None
    return ops.repeat(_visible_slots(cache), count, axis=1)[:, None]


def hypotheses(cache: KVCache) -> int:
    """Returns the number of hypotheses per source, k, an int."""
    return 1 if isinstance(cache.origins, tuple) else cache.origins.shape[1]


def _check(cache):
    """Raises ValueError unless `cache` is a `KVCache`."""
    checks.instance("cache", cache, KVCache, "a `KVCache`")


def _check_open(cache, count, token_mask):
    length = slots(cache)
    checks.count("count", count)
    if isinstance(count, int) and length is not None and count > length:
        raise ValueError(
            f"`count` must be at most {length}, the slots of the cache. "
            f"Received: count={count}"
        )
    if token_mask is not None:
        checks.tensor("token_mask", token_mask, "a bool tensor (R, T)")
        checks.no_complex("token_mask", token_mask)
        rows = cache.positions.shape[0]
        if rows is not None:
            rows = rows * hypotheses(cache)
        expected = rows, count if isinstance(count, int) else None
        if not checks.fits(token_mask.shape, expected):
            raise ValueError(
                f"`token_mask` must be bool of shape {expected}. "
                f"Received: shape {tuple(token_mask.shape)}"
            )


def _check_features(cache, layer, keys, values):
    _check(cache)
    check_layer(layer, len(cache.keys))
    for name, fresh, buffer, slots_axis in (
        ("keys", keys, cache.keys[layer], KEY_SLOTS_AXIS),
        ("values", values, cache.values[layer], VALUE_SLOTS_AXIS),
    ):
        # The last axes of a buffer are the slots and features.
        features = buffer.shape[-3 - slots_axis]
        rows = cache.positions.shape[0]
        heads = cached_heads(buffer, rows)
        check_features(name, fresh, (rows, None, heads, features))


def _visible_slots(cache):
    """Returns the slots that each hypothesis sees, bool (B, k, k L)."""
    rows, width, length = ops.shape(cache.origins)
    writers = ops.arange(width, dtype="int32")
    seen = ops.equal(cache.origins[..., None], writers)
    return ops.reshape(seen, (rows, width, length * width))


def _interleave_beams(fresh, width):
    """Reorders (B, k T, ...), making the k hypotheses of a token adjacent."""
    if fresh.shape[1] == width:
        return fresh
    rows, count, *rest = ops.shape(fresh)
    fresh = ops.reshape(fresh, (rows, width, count // width, *rest))
    return ops.reshape(ops.swapaxes(fresh, 1, 2), (rows, count, *rest))
