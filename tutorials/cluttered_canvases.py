"""Digits at random places of large canvases, among pieces of others."""

from typing import NamedTuple

import keras
import numpy as np

# The spread of the first epochs, and how many they are.
_NEAR, _NEAR_EPOCHS = 0.2, 2


class Canvases(NamedTuple):
    """Holds pictures, and what is known of them.

    Args:
        images: float32 (N, side, side, 1), 0 to 1.
        labels: int32 (N,).
        corners: int (N, 2). Row and column of the digit's first pixel.
    """

    images: np.ndarray
    labels: np.ndarray
    corners: np.ndarray


def scatter(
    digits,
    labels,
    cuttings,
    generator,
    side=60,
    pieces=8,
    piece=4,
    spread=1.0,
):
    """Puts each digit on a canvas of its own, over pieces of other digits.

    The digit is put down last, so nothing covers it.

    Args:
        digits: float32 (N, h, w), at most `side` high and wide.
        labels: int (N,).
        cuttings: float32 (M, h, w). Digits that the pieces are cut from.
        generator: `numpy.random.Generator`.
        side: int. Pixels of a canvas, each way.
        pieces: int >= 0. Pieces on a canvas.
        piece: int. Pixels of a piece, each way.
        spread: float in [0, 1]. How far from the middle digits may lie: 0 in
            the middle, 1 anywhere.

    Returns:
        `Canvases`.
    """
    count, height, width = digits.shape
    canvases = np.zeros((count, side, side), "float32")
    for _ in range(pieces):
        source = generator.integers(len(cuttings), size=count)
        cut = _squares(cuttings.shape[1:], piece, count, generator)
        put = _squares((side, side), piece, count, generator)
        cutting = cuttings[(source[:, None, None], *cut)]
        canvases[(np.arange(count)[:, None, None], *put)] = cutting
    corners = [
        _near_the_middle(side - size, spread, count, generator)
        for size in (height, width)
    ]
    corners = np.stack(corners, axis=1)
    rows = corners[:, 0, None, None] + np.arange(height)[:, None]
    columns = corners[:, 1, None, None] + np.arange(width)
    canvases[np.arange(count)[:, None, None], rows, columns] = digits
    return Canvases(canvases[..., None], np.asarray(labels, "int32"), corners)


def _near_the_middle(most, spread, count, generator):
    """Whole numbers from 0 to `most`, not far from its half."""
    away = round(spread * most / 2)
    middle = most // 2
    low, high = middle - away, min(middle + away, most)
    return generator.integers(max(low, 0), high + 1, size=count)


def _squares(shape, size, count, generator):
    """Rows (count, size, 1) and columns (count, 1, size) of random squares."""
    rows, columns = (
        generator.integers(length - size + 1, size=count) for length in shape
    )
    steps = np.arange(size)
    return rows[:, None, None] + steps[:, None], columns[:, None, None] + steps


class CanvasBatches(keras.utils.PyDataset):
    """Batches of canvases, drawn anew in each epoch.

    Batch i of epoch e is drawn from the seed, e and i alone. So a run that was
    killed finds the same batches again. The digits of the first epochs lie near
    the middle; then they may lie further and further away.

    Args:
        digits: float32 (N, h, w).
        labels: int (N,).
        batches: int. Batches of an epoch.
        size: int. B, canvases of a batch.
        seed: int.
        rise: int. The epoch from which on digits may lie anywhere. Default 0:
            from the first.
        **how: arguments of `scatter`, but `spread`.
    """

    def __init__(self, digits, labels, batches, size, seed, rise=0, **how):
        super().__init__()
        self.digits, self.labels = digits, labels
        self.batches, self.size, self.seed = batches, size, seed
        self.rise, self.how = rise, how
        self.epoch = 0

    @property
    def spread(self):
        """How far from the middle a digit may lie, see `scatter`."""
        if self.epoch >= self.rise:
            return 1.0
        ready = min(_NEAR_EPOCHS, self.rise - 1)
        done = max(0, self.epoch - ready) / (self.rise - ready)
        return _NEAR + (1 - _NEAR) * done

    def set_epoch(self, epoch):
        """Says which epoch's canvases come next; `epoch` counts from 0."""
        self.epoch = epoch

    def __len__(self):
        """Returns the number of batches of an epoch."""
        return self.batches

    def __getitem__(self, index):
        """Returns ((images, labels), labels) of a batch."""
        generator = np.random.default_rng([self.seed, self.epoch, index])
        chosen = generator.integers(len(self.digits), size=self.size)
        drawn = scatter(
            self.digits[chosen],
            self.labels[chosen],
            self.digits,
            generator,
            spread=self.spread,
            **self.how,
        )
        return (drawn.images, drawn.labels), drawn.labels
