"""Ring buffers: the last W tokens, for layers with a sliding window of W.

A layer whose window is narrower than the cache has W slots instead of L. The
token written at time t is in slot t mod W, and so replaces the one that has
just left the window. Rows with fewer tokens are moved by their padding, so that
the newest token of each row is in the same slot.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import take_along_axis, write_rows
from keras_attn.typing import Tensor, TensorLike


class Ring(NamedTuple):
    """Slots that the layers with the same window share.

    Args:
        positions: int32 (B, k W), -1 in empty slots.
        origins: int32 (B, k, W), or (): as in `KVCache`.
    """

    positions: Any
    origins: Any


def labeled(buffer: Any, window: int | None) -> Any:
    """Returns a layer's keys or values, with its window if it has one.

    The structure of a nest is the only part of it that a compiled loop does not
    turn into tensors: the window is the key of a dict.
    """
    return buffer if window is None else {str(window): buffer}


def window_of(entry: Any) -> int | None:
    """Returns the window of `labeled` keys or values, or None."""
    return int(next(iter(entry))) if isinstance(entry, dict) else None


def buffer_of(entry: Any) -> Any:
    """Returns the tensor of `labeled` keys or values."""
    return next(iter(entry.values())) if isinstance(entry, dict) else entry


def opened(
    ring: Ring,
    window: int,
    positions: TensorLike,
    origins: TensorLike,
    cursor: TensorLike,
    replace: bool,
) -> Ring:
    """Adds the slots of new tokens.

    Args:
        ring: `Ring`, consumed.
        window: int. W.
        positions: int32 (B, k T), those of the tokens.
        origins: int32 (B, k, T), their hypotheses, or ().
        cursor: int32 scalar. The time of the first one.
        replace: bool. Whether to write a single token over the oldest one.
            Otherwise the slots are added after the others, for the queries that
            still see the oldest ones, until `newest` selects those that remain.
    """
    if replace:
        width = _width(ring)
        slot = ops.mod(cursor, window)
        positions = write_rows(ring.positions, positions, slot * width)
        if width > 1:
            origins = write_rows(ring.origins, origins, slot, axis=2)
        return Ring(positions, origins)
    return Ring(
        ops.concatenate([ring.positions, positions], axis=1),
        origins
        if isinstance(origins, tuple)
        else ops.concatenate([ring.origins, origins], axis=2),
    )


def is_open(ring: Ring, window: int) -> bool:
    """Returns whether a ring has slots of new tokens after its own."""
    return ring.positions.shape[1] > window * _width(ring)


def newest(ring: Ring, window: int, end: TensorLike) -> Tensor:
    """Returns the slots of an open ring that remain.

    Args:
        ring: open `Ring`, with the slots of T new tokens.
        window: int. W.
        end: int32 scalar. The time after the last of them.

    Returns:
        Int32 (B, W): for each slot of the next ring an index in [0, W + T).
    """
    width = _width(ring)
    # The hypotheses of a source have the same positions.
    real = ring.positions[:, window * width :: width] >= 0
    count = real.shape[1]
    numbers = ops.arange(count, dtype="int32")
    # The tokens of each row in their order, after -1 for each padding token.
    tokens = ops.sort(ops.where(real, numbers, -1), axis=1)
    added = ops.sum(ops.cast(real, "int32"), axis=1, keepdims=True)
    # How many tokens of the row follow the one in a slot.
    slots = ops.arange(window, dtype="int32")[None]
    after = ops.mod(end - 1 - slots, window)
    index = ops.maximum(count - 1 - after, 0) + ops.zeros_like(added)
    old = ops.mod(end - count - 1 - (after - added), window)
    return ops.where(
        after < added, window + take_along_axis(tokens, index), old
    )


def closed(ring: Ring, indices: TensorLike) -> Ring:
    """Returns the ring with the slots of `newest` only."""
    origins = ring.origins
    if not isinstance(origins, tuple):
        origins = ops.take_along_axis(origins, indices[:, None], axis=2)
    positions = take_along_axis(ring.positions, _of_beams(ring, indices))
    return Ring(positions, origins)


def taken(
    buffer: TensorLike, ring: Ring, indices: TensorLike, axis: int
) -> Any:
    """Returns keys or values with the slots of `newest` only.

    Args:
        buffer: float (B K, ..., k (W + T), ...), or (B, K, ...).
        ring: the open `Ring`.
        indices: what `newest` returned.
        axis: int. The axis of the slots, counted from the end.
    """
    indices = _of_beams(ring, indices)
    shape, rank = ops.shape(buffer), len(buffer.shape)
    if rank == 3:
        rows, count = ops.shape(indices)
        indices = indices[:, None] + ops.zeros(
            (1, shape[0] // rows, 1), "int32"
        )
        indices = ops.reshape(indices, (shape[0], count))
    for other in range(1, rank):
        if other != rank + axis:
            indices = ops.expand_dims(indices, other)
    return ops.take_along_axis(buffer, indices, axis=rank + axis)


def _of_beams(ring, indices):
    """Returns the indices of the slots of all hypotheses, int32 (B, k W)."""
    width = _width(ring)
    if width == 1:
        return indices
    rows, count = ops.shape(indices)
    own = ops.arange(width, dtype="int32")
    return ops.reshape(indices[..., None] * width + own, (rows, count * width))


def _width(ring):
    return 1 if isinstance(ring.origins, tuple) else ring.origins.shape[1]
