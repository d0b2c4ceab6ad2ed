"""Batches of sounds of like length, with the texts that they say."""

import keras
import letters
import numpy as np
import sound_changes
from length_batches import two_lengths_first


def padded_frames(frames, length):
    """Puts frames into one array, and notes which of its rows are frames.

    Args:
        frames: list of float (F, B), F <= length.
        length: int.

    Returns:
        Float32 (rows, length, B + 1). The last feature is 1 where there is a
        frame; behind the end of a sound all features are 0.

    Raises:
        ValueError: a sound that is longer.
    """
    longest = max(map(len, frames))
    if longest > length:
        raise ValueError(
            f"`length` must be at least {longest}, the frames of the longest "
            f"sound. Received: length={length}"
        )
    batch = np.zeros((len(frames), length, frames[0].shape[1] + 1), "float32")
    for row, sound in zip(batch, frames, strict=True):
        row[: len(sound), :-1] = sound
        row[: len(sound), -1] = 1
    return batch


def padded_length(frames, lengths):
    """Returns the length that sounds of so many frames are padded to.

    Args:
        frames: int.
        lengths: tuple of int, ascending. Beyond the last one, its multiples.

    Returns:
        Int.
    """
    for length in lengths:
        if frames <= length:
            return length
    return -(-frames // lengths[-1]) * lengths[-1]


class SoundBatches(keras.utils.PyDataset):
    """Gives batches of ((frames, text so far), text), in a new order an epoch.

    Sounds are sorted by length and cut into batches, each padded to one of few
    lengths, so that a compiled backend makes few programs. The first epoch
    begins with the short ones, from which it is easier to learn what sounds
    like what (Amodei et al. 2015, sec. 3.3, https://arxiv.org/abs/1512.02595).

    Args:
        draw: callable on the number of an epoch, which returns a list of
            (frames float (F, B), text), as many in every epoch and at least
            one batch; those that fill no batch are left out.
        table: `Letters`.
        batch_size: int. Sounds in a batch.
        lengths: tuple of int, ascending: the lengths in frames that batches
            are padded to.
        longest: int. Characters that there is room for, the end included.
        hide: bool. Whether parts of the frames are hidden at random.
        seed: int.

    Raises:
        ValueError: too few sounds for a batch; texts that are too long.
    """

    def __init__(
        self, draw, table, batch_size, lengths, longest, hide=True, seed=0
    ):
        super().__init__()
        self.table, self.batch_size = table, batch_size
        self.lengths, self.longest = lengths, longest
        self.hide, self.seed = hide, seed
        self._draw, self.epoch = draw, None
        self.set_epoch(0)

    def __len__(self):
        """Returns the number of batches."""
        return len(self._batches)

    def __getitem__(self, index):
        """Returns a batch.

        Args:
            index: int.

        Returns:
            Tuple ((frames, target), labels): float32 (rows, F, B + 1), int32
            (rows, L) that begins with the start, int32 (rows, L) that ends
            with the end.
        """
        chosen = self._batches[index]
        generator = np.random.default_rng((self.seed, self.epoch, index))
        frames = [self._sounds[number][0] for number in chosen]
        length = padded_length(max(map(len, frames)), self.lengths)
        if self.hide:
            frames = [
                sound_changes.hide_parts(sound, generator) for sound in frames
            ]
        rows = [self.table.encode(self._sounds[i][1]) for i in chosen]
        target, labels = np.full(
            (2, len(rows), self.longest), letters.PAD, "int32"
        )
        for given, wanted, ids in zip(target, labels, rows, strict=True):
            given[: len(ids)] = [letters.START, *ids[:-1]]
            wanted[: len(ids)] = ids
        return (padded_frames(frames, length), target), labels

    def set_epoch(self, epoch):
        """Draws the sounds of an epoch and their order."""
        if epoch == self.epoch:
            return
        self.epoch = epoch
        self._sounds = self._draw(epoch)
        count, size = len(self._sounds), self.batch_size
        if count < size:
            raise ValueError(
                f"`draw` must return at least {size} sounds, one batch. "
                f"Received: {count}"
            )
        longest = max(len(text) for _, text in self._sounds)
        if longest >= self.longest:
            raise ValueError(
                f"`longest` must be above {longest}, the characters of the "
                f"longest text. Received: longest={self.longest}"
            )
        generator = np.random.default_rng((self.seed, epoch))
        kept = generator.permutation(count)[: count // size * size]
        frames = np.array([len(self._sounds[i][0]) for i in kept])
        by_length = kept[np.argsort(frames, kind="stable")].reshape(-1, size)
        if epoch:
            by_length = by_length[generator.permutation(len(by_length))]
        # Sorted within each batch: its last sound is the longest.
        lengths = [
            padded_length(len(self._sounds[i][0]), self.lengths)
            for i in by_length[:, -1]
        ]
        self._batches = by_length[two_lengths_first(lengths)]
