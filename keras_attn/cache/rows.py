"""F2: nests of decoding state, row by row: branched, reordered, extended."""

from keras import ops, tree

from keras_attn.backend import KEY_SLOTS_AXIS, VALUE_SLOTS_AXIS, gather_rows
from keras_attn.cache.kv_cache import KVCache, hypotheses, sources


def expand_beams(hypothesis, width):
    """Gives each source k hypotheses instead of its one.

    Args:
        hypothesis: nest of tensors with B rows each, such as a `KVCache`,
            consumed. What has no axis is shared by all rows and stays.
        width: int. k.

    Returns:
        The nest, with R = B k rows, those of a source side by side; but a
        `KVCache` keeps its B rows and has k L slots in each.

    Examples:
        >>> tokens = keras.ops.convert_to_tensor([[5], [7]])
        >>> grown = keras_attn.cache.expand_beams({"tokens": tokens}, 3)
        >>> keras.ops.convert_to_numpy(grown["tokens"])[:, 0].tolist()
        [5, 5, 5, 7, 7, 7]
    """

    def grown(part):
        if not isinstance(part, KVCache):
            # The parts of a nest, then.
            return None if tree.is_nested(part) else repeated(part, 0)
        if width == 1:
            return part
        own = ops.arange(width, dtype="int32")[None, :, None]
        return KVCache(
            tuple(repeated(tensor, KEY_SLOTS_AXIS) for tensor in part.keys),
            tuple(repeated(tensor, VALUE_SLOTS_AXIS) for tensor in part.values),
            repeated(part.positions, 1),
            own + ops.zeros_like(part.positions)[:, None],
            part.cursor,
        )

    def repeated(tensor, axis):
        if len(tensor.shape) == 0:
            return tensor
        # Not `ops.repeat`: one slot PyTorch would only read several times, and
        # a cache is written.
        count = ops.shape(tensor)[axis] * width
        places = ops.arange(count, dtype="int32") // width
        return ops.take(tensor, places, axis=axis)

    return tree.traverse(grown, hypothesis)


def reorder(hypothesis, rows):
    """Takes the given rows, int32 (R',): beam search keeps some hypotheses.

    Args:
        hypothesis: nest of tensors with R rows each, or of a `KVCache` that
            serves R, consumed. What has no axis is shared by all and stays.
        rows: int32 (R',), in [0, R); a row may be taken more than once. Of a
            `expand_beams` cache R' = R, each row is one of the same source, and
            nothing changes but who sees what.

    Returns:
        The nest, with R' rows.

    Examples:
        >>> tokens = keras.ops.convert_to_tensor([[5], [6], [7]])
        >>> rows = keras.ops.convert_to_tensor([2, 0, 0])
        >>> kept = keras_attn.cache.reorder({"tokens": tokens}, rows)
        >>> keras.ops.convert_to_numpy(kept["tokens"])[:, 0].tolist()
        [7, 5, 5]
    """

    def taken(part):
        if isinstance(part, KVCache):
            return _reordered(part, taken)
        if tree.is_nested(part):
            return None  # its parts, then
        # Not the shape itself: TensorFlow's is true where it is known.
        scalar = len(part.shape) == 0
        return part if scalar else gather_rows(part, rows)

    return tree.traverse(taken, hypothesis)


def grown(hypothesis, count):
    """Gives the caches in a nest more slots, in which nothing is written.

    A step costs what all slots cost, those that are not written included: a
    loop that may become long begins with few of them.

    Args:
        hypothesis: nest of tensors that holds `KVCache`s, consumed. What is no
            part of one stays.
        count: int >= 0. How many slots each cache gets.

    Returns:
        The nest.

    Raises:
        ValueError: a negative number.

    Examples:
        >>> cache = keras_attn.cache.empty(2, 8, 3, 4, 16, 16, "float32")
        >>> cache, other = keras_attn.cache.grown((cache, "other"), 24)
        >>> keras_attn.cache.slots(cache), other
        (32, 'other')
    """
    if count < 0:
        raise ValueError(
            "`count` must not be negative, a cache does not shrink. "
            f"Received: count={count}"
        )

    def grown(part):
        if not isinstance(part, KVCache):
            return None  # its parts, then
        if count == 0:
            return part
        copies = hypotheses(part)
        origins = part.origins

        def padded(tensor, axis, fill=0):
            width = [(0, 0)] * len(tensor.shape)
            width[axis] = (0, count * copies)
            return ops.pad(tensor, width, constant_values=fill)

        return part._replace(
            keys=tuple(padded(tensor, KEY_SLOTS_AXIS) for tensor in part.keys),
            values=tuple(
                padded(tensor, VALUE_SLOTS_AXIS) for tensor in part.values
            ),
            positions=padded(part.positions, 1, fill=-1),
            origins=ops.pad(origins, ((0, 0), (0, 0), (0, count)))
            if copies > 1
            else (),
        )

    return tree.traverse(grown, hypothesis)


def _reordered(cache, taken):
    if hypotheses(cache) > 1:
        shape = ops.shape(cache.origins)
        origins = taken(ops.reshape(cache.origins, (-1, shape[2])))
        return cache._replace(origins=ops.reshape(origins, shape))
    rows = sources(cache)

    def heads_taken(tensor):
        ends = ops.shape(tensor)[1:]
        # The heads of a row lie one after the other.
        by_row = taken(ops.reshape(tensor, (rows, -1, *ends)))
        return ops.reshape(by_row, (-1, *ends))

    return cache._replace(
        keys=tuple(map(heads_taken, cache.keys)),
        values=tuple(map(heads_taken, cache.values)),
        positions=taken(cache.positions),
    )
