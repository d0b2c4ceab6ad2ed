"""Folding of attention axes into the single length axis of the kernels."""

import math

from keras import ops

from keras_attn import checks
from keras_attn.typing import Tensor, TensorLike


class AttentionAxes:
    """Moves tensors between a caller's axes and (batch, length, ...).

    The attention axes are flattened into one length axis, all other axes
    except the last into one batch axis.

    Args:
        rank: int. Rank of the caller's query and value, including features.
        axes: tuple of int >= 1. The attention axes.

    Raises:
        ValueError: an axis is the batch axis, the feature axis or out of range.

    Examples:
        >>> axes = AttentionAxes(rank=4, axes=(1,))
        >>> tuple(axes.fold(keras.ops.ones((2, 3, 5, 7))).shape)
        (10, 3, 7)
    """

    def __init__(self, rank: int, axes: tuple[int, ...]) -> None:
        if not all(1 <= axis < rank - 1 for axis in axes):
            raise ValueError(
                "`attention_axes` must lie between the batch axis and the "
                f"features of a rank-{rank} query. Received: {axes}"
            )
        self.axes: tuple[int, ...] = tuple(axes)
        self.others: tuple[int, ...] = tuple(
            axis for axis in range(rank - 1) if axis not in self.axes
        )
        self.rank = rank
        self.plain: bool = rank == 3

    def fold(self, x: TensorLike) -> Tensor:
        """(caller's axes, trailing...) -> (batch, length, trailing...)."""
        if self.plain:
            return x
        leading = len(self.axes) + len(self.others)
        trailing = range(leading, len(x.shape))
        x = ops.transpose(x, (*self.others, *self.axes, *trailing))
        shape = ops.shape(x)
        batch = _product(shape[: len(self.others)])
        length = _product(shape[len(self.others) : leading])
        return ops.reshape(x, (batch, length, *shape[leading:]))

    def unfold(self, x: TensorLike, like: TensorLike) -> Tensor:
        """(batch, length, trailing...) -> the axes of `like`, trailing."""
        if self.plain:
            return x
        sizes = ops.shape(like)
        order = (*self.others, *self.axes)
        trailing = ops.shape(x)[2:]
        x = ops.reshape(x, (*[sizes[axis] for axis in order], *trailing))
        inverse = [order.index(axis) for axis in range(len(order))]
        return ops.transpose(
            x, (*inverse, *range(len(order), len(order) + len(trailing)))
        )

    def fold_there(self, name: str, x: TensorLike, like: TensorLike) -> Tensor:
        """Mask or positions of `like`, (caller's axes) -> (batch, length)."""
        if x is None:
            return None
        expected = tuple(like.shape[:-1])
        if not checks.fits(x.shape, expected):
            raise ValueError(
                f"`{name}` must have the shape of its tensor without the "
                f"feature axis, {expected}. "
                f"Received: {name} of shape {tuple(x.shape)}"
            )
        return self.fold(x)

    def fold_mask(self, mask: TensorLike) -> Tensor:
        """(others, query axes, key axes) -> (batch, T, S)."""
        if self.plain or mask is None:
            return mask
        shape = ops.shape(mask)
        batch, count = len(self.others), len(self.axes)
        if len(shape) != batch + 2 * count:
            raise ValueError(
                f"`attention_mask` must have rank {batch + 2 * count}, for the "
                "batch axes and the attention axes of query and key. "
                f"Received: {tuple(mask.shape)}"
            )
        return ops.reshape(
            mask,
            (
                _product(shape[:batch]),
                _product(shape[batch : batch + count]),
                _product(shape[batch + count :]),
            ),
        )

    def unfold_weights(
        self, weights: TensorLike, query: TensorLike, value: TensorLike
    ) -> Tensor:
        """(batch, N, T, S) -> (others, N, query axes, key axes)."""
        if self.plain:
            return weights
        queries, keys = ops.shape(query), ops.shape(value)
        return ops.reshape(
            weights,
            (
                *[queries[axis] for axis in self.others],
                ops.shape(weights)[1],
                *[queries[axis] for axis in self.axes],
                *[keys[axis] for axis in self.axes],
            ),
        )


def _product(sizes):
    if all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    product = sizes[0]
    for size in sizes[1:]:
        product = product * size
    return product
