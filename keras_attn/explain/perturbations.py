"""Random masks for RISE: images, audio and tokens."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.explain.arguments import (
    checked_probability,
    index,
    number_array,
)
from keras_attn.typing import Tensor, TensorLike

_MOST_POSITIONS = 2**29  # 2 GiB of float32


class PatchMasks:
    """Smooth random masks for images: upsampled and shifted binary grids.

    Petsiuk et al. 2018, sec. 3.2, https://arxiv.org/abs/1806.07421: a random
    binary grid, upsampled bilinearly to one cell more than the image, and
    cropped at a random offset. Hidden parts blend into `baseline`:

        x' = M x + (1 - M) baseline

    Args:
        grid: int >= 1, or a pair of them. Cells along the height and the
            width. Default 7.
        probability: float in (0, 1), that a cell is visible. Default 0.5.
        baseline: float, or float broadcastable to (H, W, C). Default 0.

    Examples:
        >>> masks = keras_attn.explain.PatchMasks(grid=2)
        >>> drawn = masks.draw(np.random.default_rng(0), (8, 6, 3), 5)
        >>> drawn.shape, float(drawn.min()) >= 0, float(drawn.max()) <= 1
        ((5, 8, 6), True, True)
    """

    axes = 2

    def __init__(
        self,
        grid: int | tuple[int, int] = 7,
        probability: float = 0.5,
        baseline: TensorLike = 0.0,
    ) -> None:
        grid = (grid,) * self.axes if isinstance(grid, int) else grid
        if not isinstance(grid, (list, tuple)) or len(grid) != self.axes:
            raise ValueError(
                f"`grid` must be an int, or one for each of {self.axes} axes. "
                f"Received: grid={checks.shown(grid)}"
            )
        grid = tuple(grid)
        for cells in grid:
            checks.positive_int("grid", cells)
        self.grid = grid
        self.probability: float = checked_probability(
            "probability", probability
        )
        if isinstance(baseline, bool):
            raise ValueError(
                "`baseline` must be a float or an array. "
                f"Received: baseline={baseline}"
            )
        array = number_array("baseline", baseline, "a float or an array")
        if not np.isfinite(array).all():
            raise ValueError(
                "`baseline` must be finite. "
                f"Received: values from {array.min()} to {array.max()}"
            )
        if not array.size:
            raise ValueError(
                "`baseline` must be a float or an array of one input. "
                f"Received: an array of shape {array.shape}"
            )
        # A float, unlike an array, does not change the dtype of the input.
        self.baseline: Any = array if array.ndim else array.item()

    def draw(
        self, random: np.random.Generator, shape: tuple[int, ...], count: int
    ) -> Tensor:
        """Draws masks.

        Args:
            random: `numpy.random.Generator`.
            shape: tuple of int. Shape of one input.
            count: int.

        Returns:
            Float32 (count, *positions) in [0, 1], 1 where the input is visible.
        """
        _check_draw(random, shape, count, self.axes)
        sizes = shape[: self.axes]
        cells = [min(c, size) for c, size in zip(self.grid, sizes, strict=True)]
        seen = random.random((count, *cells)) < self.probability
        masks = seen.astype("float32")
        for axis, (number, size) in enumerate(zip(cells, sizes, strict=True)):
            step = -(-size // number)
            shifts = random.integers(step, size=count)
            masks = _upsampled(masks, axis + 1, number, size, step, shifts)
        return masks

    def apply(self, inputs: TensorLike, masks: TensorLike) -> Tensor:
        """Applies each mask to one input.

        Args:
            inputs: array of one input.
            masks: float (B, *positions).

        Returns:
            Array (B, *shape of the input).
        """
        inputs, masks = _input_and_masks(inputs, masks, self.axes)
        more = inputs.ndim - self.axes
        masks = masks.reshape(masks.shape + (1,) * more)
        hidden = masks * inputs + (1 - masks) * self.baseline
        return hidden.astype(inputs.dtype)


class FrameMasks(PatchMasks):
    """Random masks over time, for audio frames (T, F) or samples (T,).

    As `PatchMasks` along one axis.

    Args:
        grid: int >= 1. Number of time segments. Default 7.
        probability: float in (0, 1), that a segment is audible. Default 0.5.
        baseline: float, or float broadcastable to (T, F). Default 0, which is
            silence for samples, but not for log energies.

    Examples:
        >>> masks = keras_attn.explain.FrameMasks(grid=4)
        >>> masks.draw(np.random.default_rng(0), (20, 13), 3).shape
        (3, 20)
    """

    axes = 1

    def __init__(
        self,
        grid: int = 7,
        probability: float = 0.5,
        baseline: TensorLike = 0.0,
    ) -> None:
        checks.positive_int("grid", grid)
        super().__init__(grid=grid, probability=probability, baseline=baseline)


class TokenMasks:
    """Random token masks: hidden tokens are replaced by another id.

    Args:
        mask_id: int. The replacement id, such as that of `[MASK]` or of the
            unknown token.
        probability: float in (0, 1), that a token is visible. Default 0.5.
        keep_ids: iterable of int. Ids that are never hidden, such as padding
            and the end token. Default: 0.

    Examples:
        >>> masks = keras_attn.explain.TokenMasks(mask_id=1)
        >>> ids = np.array([5, 6, 7, 0])
        >>> masks.apply(ids, np.array([[1, 0, 1, 0]], "float32")).tolist()
        [[5, 1, 7, 0]]
    """

    axes = 1

    def __init__(
        self,
        mask_id: int,
        probability: float = 0.5,
        keep_ids: Iterable[int] = (0,),
    ) -> None:
        self.mask_id: int = index("mask_id", mask_id, 2**31, "the int32 ids")
        self.probability: float = checked_probability(
            "probability", probability
        )
        self.keep_ids: tuple[int, ...] = _ids("keep_ids", keep_ids)

    def draw(self, random: Any, shape: tuple[int, ...], count: int) -> Tensor:
        """Draws masks; see `PatchMasks.draw`."""
        _check_draw(random, shape, count, self.axes)
        seen = random.random((count, *shape[:1])) < self.probability
        return seen.astype("float32")

    def apply(self, inputs: TensorLike, masks: Any) -> Tensor:
        """Applies each mask to one row of ids."""
        inputs, masks = _input_and_masks(inputs, masks, self.axes)
        may = ~np.isin(inputs, self.keep_ids)
        return np.where((masks < 0.5) & may, self.mask_id, inputs).astype(
            inputs.dtype
        )


def _check_draw(random, shape, count, axes):
    """Raises ValueError if an argument of `draw` is something else."""
    checks.instance(
        "random", random, np.random.Generator, "a `numpy.random.Generator`"
    )
    checks.positive_int("count", count)
    fits = isinstance(shape, (list, tuple)) and len(shape) >= axes
    sizes = shape[:axes] if fits else [None]
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes):
        raise ValueError(
            f"`shape` must be that of one input, with at least {axes} axes. "
            f"Received: shape={checks.shown(shape)}"
        )
    if count * math.prod(sizes) > _MOST_POSITIONS:
        raise ValueError(
            f"`count` must be at most {_MOST_POSITIONS} positions in all. "
            f"Received: count={checks.shown(count)} for shape={shape}"
        )


def _input_and_masks(inputs, masks, axes):
    """Returns both arguments of `apply` as arrays, or raises ValueError."""
    inputs = number_array("inputs", inputs)
    masks = number_array("masks", masks)
    if inputs.ndim < axes or masks.shape[1:] != inputs.shape[:axes]:
        raise ValueError(
            f"`masks` must be of shape (B, {'H, W' if axes > 1 else 'T'}), as "
            f"the positions of `inputs`. Received: masks of shape "
            f"{masks.shape} for inputs of shape {inputs.shape}"
        )
    return inputs, masks


def _ids(name, value):
    """Returns a tuple of int, or raises ValueError."""
    if hasattr(value, "shape"):
        # A scalar is no iterable as a Python number.
        value = number_array(name, value, "ids (int)").tolist()
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise ValueError(
            f"`{name}` must be ids (int). Received: {checks.shown(value)}"
        )
    found = []
    for item in value:
        if isinstance(item, bool) or not isinstance(item, (int, np.integer)):
            raise ValueError(
                f"`{name}` must be ids (int). Received: {checks.shown(item)}"
            )
        found.append(int(item))
    return tuple(found)


def _upsampled(masks, axis, cells, size, step, shifts):
    """Upsamples an axis bilinearly by `step`, and crops it to `size`.

    The upsampled grid is one cell longer than the input; each mask is cropped
    at its own shift within the first cell.
    """
    positions = shifts[:, None] + np.arange(size)  # (count, size)
    # Half-pixel centers: `cells` cells resized to (cells + 1) * step positions.
    scale = cells / ((cells + 1) * step)
    at = np.clip((positions + 0.5) * scale - 0.5, 0, cells - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, cells - 1)
    fraction = (at - low).astype("float32")
    shape = [len(masks)] + [1] * (masks.ndim - 1)
    shape[axis] = size
    low, high, fraction = (x.reshape(shape) for x in (low, high, fraction))
    wide = list(masks.shape)
    wide[axis] = size
    low, high = (np.broadcast_to(x, wide) for x in (low, high))
    below = np.take_along_axis(masks, low, axis)
    above = np.take_along_axis(masks, high, axis)
    return below + fraction * (above - below)
