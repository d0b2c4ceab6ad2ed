"""Batches of records of similar length."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_attn import checks


class BucketedDataset(keras.utils.PyDataset):
    """Batches of records of similar length, in random order, for `fit`.

    Records are divided into buckets by quantiles of their lengths. All batches
    of a bucket have one shape, so a compiled model is compiled `num_buckets`
    times, and little of a batch is padding. Each record is in one batch of an
    epoch, unless `curriculum_epochs` leaves it out; the last batch of a bucket
    is filled up with records of that bucket that it repeats. The same idea is
    TensorFlow's `bucket_by_sequence_length`
    (https://www.tensorflow.org/api_docs/python/tf/data/Dataset); for pairs of
    sentences, `keras_attn.text.token_batches` makes batches of equally many
    tokens.

    The order and the random numbers of `encode` depend on `seed` and on the
    epoch alone, so a training that is resumed by `TrainingBackup(data=...)`
    sees the same batches. Call `fit` with `shuffle=False`, which would shuffle
    the batches once more.

    Args:
        records: list of the examples, of any type.
        lengths: list of int >= 1. Length of each record.
        encode: callable. `encode(records, length, random)` returns the batch
            for a list of records, padded to `length`, for example a tuple of
            inputs and labels; `random` is a `numpy.random.Generator`, for
            augmentation.
        batch_size: int >= 1. Records of a batch. Default 32.
        num_buckets: int >= 1. Number of shapes, at most. Default 4.
        shuffle: bool. False: all epochs are the same, sorted by length, as for
            validation. Default True.
        seed: int >= 0. Default 0.
        curriculum_epochs: int >= 0. Number of epochs at the start that leave
            out long records: the first uses the shortest 40 % of the records,
            later ones linearly more, until all are used. Such an epoch repeats
            records, so that it has as many batches as any other. Sequences
            whose alignment has to be learned, such as speech, are learned
            faster in this order (Amodei et al. 2016,
            https://arxiv.org/abs/1512.02595, sec. 3.2). Default 0: all epochs
            use all records.

    Raises:
        ValueError: an argument has another type or value, there is no record,
            or `curriculum_epochs` is not 0 without `shuffle`.

    Examples:
        >>> import numpy as np
        >>> words = ["a", "an", "the", "them", "attention", "transformers"]
        >>> def encode(words, length, random):
        ...     return np.array([word.ljust(length, ".") for word in words])
        >>> batches = keras_attn.training.BucketedDataset(
        ...     words, [len(word) for word in words], encode, 2, num_buckets=2)
        >>> sorted(len(batch[0]) for batch in batches)
        [4, 4, 12]
    """

    def __init__(
        self,
        records: Sequence[Any],
        lengths: Sequence[int],
        encode: Callable[..., Any],
        batch_size: int = 32,
        num_buckets: int = 4,
        shuffle: bool = True,
        seed: int = 0,
        curriculum_epochs: int = 0,
    ) -> None:
        super().__init__()
        self.batch_size: int = checks.positive_int("batch_size", batch_size)
        self.num_buckets: int = checks.positive_int("num_buckets", num_buckets)
        self.shuffle: bool = checks.boolean("shuffle", shuffle)
        self.seed: int = checks.integer("seed", seed, 0)
        self.curriculum_epochs: int = checks.integer(
            "curriculum_epochs", curriculum_epochs, 0
        )
        if curriculum_epochs and not shuffle:
            raise ValueError(
                "`curriculum_epochs` must be 0 if `shuffle` is False. "
                f"Received: curriculum_epochs={curriculum_epochs}"
            )
        self._records = list(checks.iterable("records", records, "a list"))
        self._encode = encode
        lengths = checks.iterable("lengths", lengths, "a list of int")
        lengths = [
            checks.count(f"lengths[{i}]", length)
            for i, length in enumerate(lengths)
        ]
        if len(lengths) != len(self._records) or not lengths:
            raise ValueError(
                "`lengths` must have one length for each of at least one "
                f"record. Received: {len(self._records)} records, "
                f"{len(lengths)} lengths"
            )
        if not callable(encode):
            raise ValueError(
                "`encode` must be a callable. Received: "
                f"encode={checks.shown(encode)}"
            )
        quantiles = np.arange(1, self.num_buckets + 1) / self.num_buckets
        limits = np.quantile(lengths, quantiles, method="higher")
        self._limits = np.unique(limits)
        self._buckets = np.searchsorted(self._limits, lengths)
        # 0 for the shortest record.
        self._ranks = np.argsort(np.argsort(lengths, kind="stable"))
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draws the batches of an epoch, numbered from 0."""
        self._epoch = checks.integer("epoch", epoch, 0)
        random = np.random.default_rng((self.seed, self._epoch))
        share = 1.0
        if self._epoch < self.curriculum_epochs:
            share = 0.4 + 0.6 * self._epoch / self.curriculum_epochs
        is_used = self._ranks < np.ceil(share * len(self._ranks))
        used = 1 + self._buckets[is_used].max()  # buckets
        batches = []
        for number, size in enumerate(np.bincount(self._buckets)):
            bucket = number
            if number >= used:
                # A bucket in use replaces it; the longest replaces the last.
                bucket = used - 1 - (len(self._limits) - 1 - number) % used
            rows = np.flatnonzero(is_used & (self._buckets == bucket))
            if self.shuffle:
                rows = random.permutation(rows)
            shape = -(-size // self.batch_size), self.batch_size
            rows = np.resize(rows, shape)
            length = int(self._limits[bucket])
            batches += [(length, row) for row in rows]
        # On TensorFlow, Keras (as of Keras 3.15.1) takes an axis for constant
        # if it has the same size in the first two batches: these are from
        # different buckets.
        middle = batches[1:-1]
        if self.shuffle:
            random.shuffle(middle)
        self._batches = [*batches[:1], *batches[1:][-1:], *middle]

    def on_epoch_end(self) -> None:
        """Draws the batches of the next epoch; `fit` calls it."""
        if self.shuffle:
            self.set_epoch(self._epoch + 1)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Any:
        length, rows = self._batches[index]
        random = np.random.default_rng((self.seed, self._epoch, index))
        return self._encode([self._records[i] for i in rows], length, random)
