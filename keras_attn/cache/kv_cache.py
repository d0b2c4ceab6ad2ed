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
    reduce_max,
    values_by_head,
    values_by_slot,
    write_rows,
)
from keras_attn.cache import ring as rings
from keras_attn.cache.arguments import (
    check_features,
    check_layer,
    check_projections,
    check_size,
    layer_windows,
)
from keras_attn.cache.int8 import Int8, each, restored, rounded, shape_of
from keras_attn.cache.ring import Ring, buffer_of, labeled, window_of
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

    A layer with a sliding window has at most as many slots as its window, in
    which new tokens replace those that no later token sees: its memory does not
    depend on the length of the sequence.

    Args:
        keys: tuple of float (B K, H, k L), one per layer; on PyTorch
            (B K, k L, H). Those of a layer with a sliding window are in a dict,
            with the window as the only key. After `quantized`, a named tuple of
            int8 codes of that shape and of float scales, one per token and
            head, is in place of each tensor.
        values: tuple of float (B K, k L, W), one per layer, in the same form.
        positions: int32 (B, k L), -1 in empty slots and for padding.
        origins: int32 (B, k, L). Index of the hypothesis that wrote the entry
            that this hypothesis sees in a slot; () with one hypothesis per
            source.
        cursor: int32 scalar. Index of the next free of the L slots. After
            `crop`, int32 (B,): one for each row.
        rings: dict of windows below L, as strings, to the positions and origins
            of their slots; () without them.

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
    rings: Any = ()


def empty(
    rows: int,
    length: int,
    layers: int,
    heads: int,
    key_dim: int,
    value_dim: int,
    dtype: str,
    sliding_window: int | Sequence[int | None] | None = None,
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
        sliding_window: int, or a list with one int or None per layer. A layer
            with a window has no more slots than that. Default None: no windows.

    Returns:
        `KVCache` with its cursor at 0 and all positions -1.

    Raises:
        ValueError: a size that is no integer or too large, another dtype, or
            windows that do not match the layers.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> keras_attn.cache.slots(cache), int(keras_attn.cache.sources(cache))
        (8, 2)
        >>> cache = keras_attn.cache.empty(
        ...     2, 8, 2, 4, 16, 16, "float32", sliding_window=[None, 3])
        >>> tuple(keras_attn.cache.read(cache, 1, 4)[0].shape)
        (2, 3, 4, 16)
    """
    check_size(rows, length, layers, heads, key_dim, value_dim, dtype)
    windows = layer_windows(sliding_window, layers)
    if not isinstance(length, int):
        windows = [None] * layers  # a length that the program does not know
    counts = [length if w is None else min(w, length) for w in windows]
    narrow = {w for w in windows if w is not None and w < length}
    return KVCache(
        keys=tuple(
            labeled(no_keys(rows, heads, count, key_dim, dtype), window)
            for window, count in zip(windows, counts, strict=True)
        ),
        values=tuple(
            labeled(no_values(rows, heads, count, value_dim, dtype), window)
            for window, count in zip(windows, counts, strict=True)
        ),
        positions=full((rows, length), -1, dtype="int32"),
        origins=(),
        cursor=ops.zeros((), dtype="int32"),
        rings={
            str(w): Ring(full((rows, w), -1, dtype="int32"), ())
            for w in sorted(narrow)
        }
        or (),
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
        ValueError: more tokens than slots, a mask of another shape, or a mask
            for several hypotheses per source in a cache with sliding windows.

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
    own: Any = ()
    if width > 1:
        own = ops.arange(width, dtype="int32")[None, :, None]
        own = own + ops.zeros_like(cache.origins[:, :, :count])
        origins = write_rows(cache.origins, own, cache.cursor, axis=2)
        cache = cache._replace(origins=origins)
    if cache.rings:
        replace = count == 1 and token_mask is None
        opened = {
            name: rings.opened(
                ring, int(name), added, own, cache.cursor, replace
            )
            for name, ring in cache.rings.items()
        }
        cache = cache._replace(rings=opened)
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
    window = window_of(cache.keys[layer])
    ring = _ring(cache, window)
    added = ring is not None and rings.is_open(ring, window)
    if added:
        # The queries of the layers before no longer need their oldest tokens.
        count = keys.shape[1] // width
        cache = _closed(cache, str(window), cache.cursor + count, layer)

    def written(buffers, fresh, by_head, axis):
        def write(buffer, fresh):
            if added:
                fresh = ops.cast(fresh, buffer.dtype)
                return ops.concatenate([buffer, fresh], axis=axis)
            start = cache.cursor
            if ring is not None:
                start = ops.mod(start, window)
            return write_rows(buffer, fresh, start * width, axis)

        buffer = buffer_of(buffers[layer])
        axis = axis % len(shape_of(buffer))
        if isinstance(buffer, Int8):
            fresh = rounded(fresh)
        buffer = labeled(each(write, buffer, each(by_head, fresh)), window)
        return (*buffers[:layer], buffer, *buffers[layer + 1 :])

    keys, values = (_interleave_beams(fresh, width) for fresh in (keys, values))
    return cache._replace(
        keys=written(cache.keys, keys, keys_by_head, KEY_SLOTS_AXIS),
        values=written(cache.values, values, values_by_head, VALUE_SLOTS_AXIS),
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
    end = cache.cursor + count
    for name, ring in (cache.rings or {}).items():
        if rings.is_open(ring, int(name)):
            indices = rings.newest(ring, int(name), end)
            cache = _closed(cache, name, end, len(cache.keys))
            closed = cache.rings | {name: rings.closed(ring, indices)}
            cache = cache._replace(rings=closed)
    return cache._replace(cursor=end)


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
        ValueError: a cache with several hypotheses per source, or with fewer
            slots for a sliding window: the removed tokens have replaced others
            there; or `count` is not of integers, or of another shape.

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
    if cache.rings:
        raise ValueError(
            "`cache` must have all slots in every layer. Received: a cache "
            f"with sliding windows of {', '.join(cache.rings)}"
        )
    positions = cache.positions
    used = ops.cast(positions >= 0, "int32")
    # They count the tokens of a row from 0.
    left = ops.sum(used, axis=1) - ops.cast(count, "int32")
    kept = ops.logical_and(positions >= 0, positions < left[:, None])
    after = ops.arange(positions.shape[1], dtype="int32") + 1
    return cache._replace(
        positions=ops.where(kept, positions, -1),
        cursor=reduce_max(ops.where(kept, after, 0), axis=1),
    )


def read(
    cache: KVCache, layer: int, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the keys, values and positions of one layer.

    After `expand_beams` these are the slots of all hypotheses of a source;
    `beam_mask` returns which of them a hypothesis may see. The slots of a layer
    with a sliding window are in no particular order.

    Args:
        cache: `KVCache`.
        layer: int.
        heads: int. K, number of key-value heads.

    Returns:
        Float (B, k L, K, H), float (B, k L, K, W) and int32 (B, k L), with the
        number of slots of the layer in place of L if it has a sliding window.

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
    keys, values = (buffer_of(x[layer]) for x in (cache.keys, cache.values))
    shape = shape_of(keys)
    rows = shape[1 if len(shape) == 4 else 0]
    if rows is not None and rows % heads:
        raise ValueError(
            f"`heads` must divide the {rows} rows and heads of the cache. "
            f"Received: heads={heads}"
        )
    ring = _ring(cache, window_of(cache.keys[layer]))
    return (
        restored(each(lambda x: keys_by_slot(x, heads), keys)),
        restored(each(lambda x: values_by_slot(x, heads), values)),
        cache.positions if ring is None else ring.positions,
    )


def beam_mask(
    cache: KVCache, count: int, layer: int | None = None
) -> Tensor | None:
    """Returns which slots of a source belong to each hypothesis.

    Args:
        cache: `KVCache`.
        count: int. T, number of query tokens per hypothesis.
        layer: int. The layer that `read` is called with. Default None: any
            without a sliding window.

    Returns:
        Bool (B, 1, k T, k L), or None with one hypothesis per source.

    Raises:
        ValueError: no such layer.

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
    ring = None
    if layer is not None:
        check_layer(layer, len(cache.keys))
        ring = _ring(cache, window_of(cache.keys[layer]))
    if hypotheses(cache) == 1:
        return None
    slots = cache if ring is None else ring
    return ops.repeat(_visible_slots(slots), count, axis=1)[:, None]


def hypotheses(cache: KVCache) -> int:
    """Returns the number of hypotheses per source, k, an int."""
    return 1 if isinstance(cache.origins, tuple) else cache.origins.shape[1]


def _ring(cache, window):
    """Returns the `Ring` of a window, None if its layers have all slots."""
    if window is None or not cache.rings:
        return None
    return cache.rings.get(str(window))


def _closed(cache, name, end, layers):
    """Drops slots of an open ring from the layers before `layers`.

    Once all layers are closed, `close_slots` closes the ring itself.
    """
    ring, window = cache.rings[name], int(name)

    def kept(index, entry, axis):
        buffer = buffer_of(entry)
        slots = shape_of(buffer)[axis] // hypotheses(cache)
        if index >= layers or window_of(entry) != window or slots == window:
            return entry
        indices = rings.newest(ring, window, end)
        buffer = each(lambda x: rings.taken(x, ring, indices, axis), buffer)
        return labeled(buffer, window)

    def all_kept(entries, axis):
        return tuple(kept(i, entry, axis) for i, entry in enumerate(entries))

    return cache._replace(
        keys=all_kept(cache.keys, KEY_SLOTS_AXIS),
        values=all_kept(cache.values, VALUE_SLOTS_AXIS),
    )


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
        if cache.rings and hypotheses(cache) > 1:
            raise ValueError(
                "`token_mask` must be None if there are several hypotheses per "
                "source and sliding windows. Received: "
                f"token_mask={checks.shown(token_mask)}"
            )
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
        ("keys", keys, buffer_of(cache.keys[layer]), KEY_SLOTS_AXIS),
        ("values", values, buffer_of(cache.values[layer]), VALUE_SLOTS_AXIS),
    ):
        # The last axes of a buffer are the slots and features.
        codes = buffer.codes if isinstance(buffer, Int8) else buffer
        features = codes.shape[-3 - slots_axis]
        rows = cache.positions.shape[0]
        heads = cached_heads(codes, rows)
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
