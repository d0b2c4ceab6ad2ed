"""Batches of items of like length, each length one shape."""

import keras
import numpy as np


class LengthBatches(keras.utils.PyDataset):
    """Gives batches of items, in an order that the epoch's number decides.

    Items are sorted into few lengths, and all batches of a length have one
    shape: the last one of each is filled up with items that were there before.
    A compiled backend then compiles one program a length. `set_epoch` is what
    `TrainingBackup` asks for, so that a killed run goes on in the same order.

    Args:
        items: list.
        sizes: list of int, how many places each item needs.
        batch_size: int >= 1. Items in a batch.
        make: function of (list of items, length, `numpy.random.Generator`)
            that returns a batch of that length.
        buckets: int >= 1. Lengths at most. Default 3.
        seed: int >= 0.

    Raises:
        ValueError: no items, or not as many sizes.
    """

    def __init__(self, items, sizes, batch_size, make, buckets=3, seed=0):
        super().__init__()
        if not items or len(items) != len(sizes):
            raise ValueError(
                "`items` must not be empty, and each must have a size. "
                f"Received: {len(items)} items and {len(sizes)} sizes"
            )
        self._items, self._make, self._seed = items, make, seed
        self._batch_size = batch_size
        self.lengths = few_lengths(sizes, buckets)
        place = np.searchsorted(self.lengths, sizes)
        self._members = [
            np.flatnonzero(place == number)
            for number in range(len(self.lengths))
        ]
        self.set_epoch(0)

    def __len__(self):
        """Returns the number of batches."""
        return len(self._order)

    def __getitem__(self, index):
        """Returns a batch."""
        length, rows = self._order[index]
        draw = np.random.default_rng((self._seed, self._epoch, index))
        return self._make([self._items[row] for row in rows], length, draw)

    def on_epoch_end(self):
        """Goes on to the next epoch."""
        self.set_epoch(self._epoch + 1)

    def set_epoch(self, epoch):
        """Sets the number of the epoch that is read next, from 0."""
        self._epoch = epoch
        draw = np.random.default_rng((self._seed, epoch))
        order = []
        for length, members in zip(self.lengths, self._members, strict=True):
            members = draw.permutation(members)
            count = -(-len(members) // self._batch_size)
            filled = np.resize(members, (count, self._batch_size))
            order += [(length, rows) for rows in filled]
        order = [order[i] for i in draw.permutation(len(order))]
        first = two_lengths_first([length for length, _ in order])
        self._order = [order[place] for place in first]


def two_lengths_first(lengths):
    """Orders batches so that the first two differ, where any do.

    From these two Keras concludes on TensorFlow which axes have one size in
    all batches of a `PyDataset`.

    Args:
        lengths: list of int, of the batches.

    Returns:
        List of int, indices into `lengths`.

    Examples:
    >>> two_lengths_first([8, 8, 16, 8])
    [0, 2, 1, 3]
    """
    order = list(range(len(lengths)))
    for place, length in enumerate(lengths):
        if length != lengths[0]:
            order[1], order[place] = order[place], order[1]
            break
    return order


def few_lengths(sizes, count):
    """Chooses lengths such that about as many items have each.

    Args:
        sizes: list of int.
        count: int >= 1. Lengths at most.

    Returns:
        List of int, growing; the last is the largest size. All but that are
        multiples of 4, so that a few more or less make no difference.

    Examples:
    >>> few_lengths([3, 4, 9, 10, 30, 31], 3)
    [4, 12, 31]
    """
    ordered, largest = sorted(sizes), max(sizes)
    shares = (len(ordered) * (i + 1) // count - 1 for i in range(count - 1))
    lengths = {-(-ordered[max(0, at)] // 4) * 4 for at in shares}
    return sorted({x for x in lengths if x < largest} | {largest})
