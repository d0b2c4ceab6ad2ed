"""Expands, reorders, grows and quantizes nests of decoding state."""

import numpy as np
from keras import ops, tree

from keras_attn import checks
from keras_attn.backend import KEY_SLOTS_AXIS, VALUE_SLOTS_AXIS, gather_rows
from keras_attn.cache import ring as rings
from keras_attn.cache.int8 import Int8, each, rounded
from keras_attn.cache.kv_cache import KVCache, hypotheses, slots, sources
from keras_attn.cache.ring import Ring, buffer_of, labeled, window_of
from keras_attn.typing import Nest, TensorLike


def expand_beams(hypothesis: Nest, width: int) -> Nest:
    """Expands each source to k hypotheses.

    Args:
        hypothesis: nest of tensors with B rows each, such as a `KVCache`,
            consumed. Scalars are shared by all rows and unchanged.
        width: int. k.

    Returns:
        The nest with R = B k rows, those of a source adjacent; a `KVCache`
        keeps its B rows, with k L slots each.

    Raises:
        ValueError: a width below 1, no nest of tensors, or a cache after
            `crop`.

    Examples:
        >>> tokens = keras.ops.convert_to_tensor([[5], [7]])
        >>> grown = keras_attn.cache.expand_beams({"tokens": tokens}, 3)
        >>> keras.ops.convert_to_numpy(grown["tokens"])[:, 0].tolist()
        [5, 5, 5, 7, 7, 7]
    """
    checks.count("width", width)

    def grown(part):
        if not isinstance(part, KVCache):
            # None makes `traverse` descend into the nest.
            return None if tree.is_nested(part) else repeated(part, 0)
        if width == 1:
            return part
        if len(part.cursor.shape):
            raise ValueError(
                "`hypothesis` must have the same cursor in all rows of a cache."
                " Received: a cache after `crop`"
            )
        own = ops.arange(width, dtype="int32")[None, :, None]

        def with_origins(slots):
            origins = own + ops.zeros_like(slots.positions)[:, None]
            positions = repeated(slots.positions, 1)
            return slots._replace(positions=positions, origins=origins)

        part = _with_rings(part, with_origins)
        return with_origins(_mapped(part, lambda x, axis, _: repeated(x, axis)))

    def repeated(tensor, axis):
        checks.tensor("hypothesis", tensor, "a nest of tensors")
        if len(tensor.shape) == 0:
            return tensor
        # Not `ops.repeat`: on PyTorch it may return a view with stride 0
        # (as of Keras 3.15.1), and a cache is written in place.
        axis = axis % len(tensor.shape)
        count = ops.shape(tensor)[axis] * width
        indices = ops.arange(count, dtype="int32") // width
        return ops.take(tensor, indices, axis=axis)

    return tree.traverse(grown, hypothesis)


def reorder(hypothesis: Nest, rows: TensorLike) -> Nest:
    """Gathers rows, such as the hypotheses that beam search keeps.

    Args:
        hypothesis: nest of tensors with R rows each, or of a `KVCache` for R
            rows, consumed. Scalars are shared by all rows and unchanged.
        rows: int32 (R',), in [0, R), may repeat. For a cache after
            `expand_beams`, R' = R, each row must come from the same source, and
            only the visibility of slots changes.

    Returns:
        The nest with R' rows.

    Raises:
        ValueError: `rows` are not integers of rank 1, or `hypothesis` is no
            nest of tensors.

    Examples:
        >>> tokens = keras.ops.convert_to_tensor([[5], [6], [7]])
        >>> rows = keras.ops.convert_to_tensor([2, 0, 0])
        >>> kept = keras_attn.cache.reorder({"tokens": tokens}, rows)
        >>> keras.ops.convert_to_numpy(kept["tokens"])[:, 0].tolist()
        [7, 5, 5]
    """
    checks.tensor("rows", rows, "an integer tensor (R',)")
    checks.rank("rows", rows, 1)
    checks.integers("rows", rows)

    def taken(part):
        if isinstance(part, KVCache):
            return _reordered(part, taken)
        if tree.is_nested(part):
            return None  # descends into the nest
        checks.tensor("hypothesis", part, "a nest of tensors")
        if isinstance(part, np.ndarray):
            part = ops.convert_to_tensor(part)
        # `len`, because a known TensorFlow shape is truthy even if empty
        # (as of TensorFlow 2.21.0).
        scalar = len(part.shape) == 0
        return part if scalar else gather_rows(part, rows)

    return tree.traverse(taken, hypothesis)


def grown(hypothesis: Nest, count: int) -> Nest:
    """Adds empty slots to the caches in a nest.

    The cost of a step grows with the number of slots, written or not, so a loop
    that may become long starts with few of them. Layers with a sliding window
    get no more slots than that.

    Args:
        hypothesis: nest of tensors that contains `KVCache`s, consumed. Other
            tensors are unchanged.
        count: int >= 0. Number of slots added to each cache.

    Returns:
        The nest.

    Raises:
        ValueError: `count` is no integer, or negative.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> cache, other = keras_attn.cache.grown((cache, "other"), 24)
        >>> keras_attn.cache.slots(cache), other
        (32, 'other')
    """
    # A cache cannot shrink.
    checks.count("count", count, 0)

    def grown(part):
        if not isinstance(part, KVCache):
            return None  # descends into the nest
        if count == 0:
            return part
        copies, length = hypotheses(part), slots(part)

        def padded(tensor, axis, before=0, after=0, fill=0):
            width = [(0, 0)] * len(tensor.shape)
            width[axis] = (before * copies, after * copies)
            return ops.pad(tensor, width, constant_values=fill)

        def resized(slots, before=0, after=0):
            origins = slots.origins
            if copies > 1:
                width = (0, 0), (0, 0), (before, after)
                origins = ops.pad(origins, width)
            positions = padded(slots.positions, 1, before, after, fill=-1)
            return slots._replace(positions=positions, origins=origins)

        # The windows that are narrower than the cache from now on.
        narrow = {}
        for window in map(window_of, part.keys):
            if window is not None and length <= window < length + count:
                ring = resized(Ring(part.positions, part.origins), window)
                narrow[window] = ring, rings.newest(ring, window, part.cursor)

        def buffer(tensor, axis, window):
            if window in narrow:
                tensor = padded(tensor, axis, before=window)
                return rings.taken(tensor, *narrow[window], axis)
            if window is not None and window < length:
                return tensor
            return padded(tensor, axis, after=count)

        closed = {str(w): rings.closed(*pair) for w, pair in narrow.items()}
        part = resized(_mapped(part, buffer), after=count)
        return part._replace(rings=dict(part.rings or {}) | closed or ())

    return tree.traverse(grown, hypothesis)


def quantized(hypothesis: Nest) -> Nest:
    """Rounds the keys and values in a nest to 8 bits.

    Each token has a scale per head, its largest feature / 127, in the dtype of
    the cache. Tokens appended later are rounded too; `read` returns floats.
    With 64 features per head, the cache takes 27 % of its bytes in float32.

    Args:
        hypothesis: nest of tensors that contains `KVCache`s, consumed. Other
            tensors are unchanged.

    Returns:
        The nest.

    Raises:
        ValueError: there is no `KVCache` in the nest.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> cache = keras_attn.cache.quantized(cache)
        >>> keras.backend.standardize_dtype(cache.values[0].codes.dtype)
        'int8'
        >>> keys, _, _ = keras_attn.cache.read(cache, 0, 4)
        >>> keras.backend.standardize_dtype(keys.dtype)
        'float32'
    """
    count = 0

    def rounded_cache(part):
        nonlocal count
        if not isinstance(part, KVCache):
            return None  # descends into the nest
        count += 1

        def entries(entries, slots_axis):
            # The last axes of a buffer are the slots and features.
            axis = -3 - slots_axis
            return tuple(
                entry
                if isinstance(buffer_of(entry), Int8)
                else labeled(rounded(buffer_of(entry), axis), window_of(entry))
                for entry in entries
            )

        return part._replace(
            keys=entries(part.keys, KEY_SLOTS_AXIS),
            values=entries(part.values, VALUE_SLOTS_AXIS),
        )

    found = tree.traverse(rounded_cache, hypothesis)
    if not count:
        raise ValueError(
            "`hypothesis` must contain a `KVCache`. "
            f"Received: {type(hypothesis).__name__} without one"
        )
    return found


def _reordered(cache, taken):
    if hypotheses(cache) > 1:

        def origins_taken(slots):
            shape = ops.shape(slots.origins)
            origins = taken(ops.reshape(slots.origins, (-1, shape[2])))
            return slots._replace(origins=ops.reshape(origins, shape))

        return origins_taken(_with_rings(cache, origins_taken))
    rows = sources(cache)

    def heads_taken(tensor):
        if len(tensor.shape) == 4:
            return taken(tensor)
        ends = ops.shape(tensor)[1:]
        # The heads of a row are adjacent.
        by_row = taken(ops.reshape(tensor, (rows, -1, *ends)))
        return ops.reshape(by_row, (-1, *ends))

    def positions_taken(slots):
        return slots._replace(positions=taken(slots.positions))

    cache = _with_rings(cache, positions_taken)._replace(
        cursor=taken(cache.cursor)
    )
    return positions_taken(_mapped(cache, lambda x, *_: heads_taken(x)))


def _with_rings(cache, function):
    """Applies a function to each `Ring` of a cache."""
    if not cache.rings:
        return cache
    found = {name: function(ring) for name, ring in cache.rings.items()}
    return cache._replace(rings=found)


def _mapped(cache, function):
    """Applies a function of a tensor, an axis and a window to all layers."""

    def mapped(entries, axis):
        windows = map(window_of, entries)
        return tuple(
            labeled(
                each(
                    lambda x, w=window: function(x, axis, w), buffer_of(entry)
                ),
                window,
            )
            for entry, window in zip(entries, windows, strict=True)
        )

    return cache._replace(
        keys=mapped(cache.keys, KEY_SLOTS_AXIS),
        values=mapped(cache.values, VALUE_SLOTS_AXIS),
    )
