"""TokenDataset: batches of token ids in another order in each epoch."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras import tree

from keras_attn import checks
from keras_attn.text import packages
from keras_attn.text.batch_report import BatchReport


class TokenDataset(keras.utils.PyDataset):
    """Batches of token ids, as NumPy arrays, in another order in each epoch.

    `token_batches`, `token_blocks` and `token_streams` make them. Pass one to
    `fit`, `evaluate` or `predict`, on any backend, with `shuffle=False`: it
    shuffles itself, and `shuffle=True` would draw another order from a state
    that is not saved. Batches are cut from arrays in memory, so leave `workers`
    at 1; with more, Keras reads the first batches of a training twice and
    leaves out the last ones (as of Keras 3.15.1).

    `dataset[i]` is batch i of the current epoch, whose number is
    `dataset.epoch`. A loop over the dataset, and each epoch of `fit`, reads one
    epoch; after a partial read the same epoch starts again.

    Args:
        draw: function of an epoch number that returns a function of a batch
            number, which returns the batch: NumPy arrays in the structure that
            `fit` expects. Both must be picklable for worker processes on
            platforms that cannot fork.
        num_batches: int >= 1. Batches of an epoch.
        initial_epoch: int >= 0. The number of the first epoch. Default 0.
        report: `BatchReport` of the batches, or None, the default.

    Examples:
        >>> dataset = keras_attn.text.token_blocks(
        ...     np.arange(9), length=4, batch_size=1, shuffle=False)
        >>> for inputs, labels in dataset:
        ...     print(inputs.tolist(), labels.tolist())
        [[0, 1, 2, 3]] [[1, 2, 3, 4]]
        [[4, 5, 6, 7]] [[5, 6, 7, 8]]
        >>> dataset.epoch
        1
    """

    def __init__(
        self,
        draw: Callable[..., Any],
        num_batches: int,
        initial_epoch: int = 0,
        report: BatchReport | None = None,
    ) -> None:
        super().__init__()
        if not callable(draw):
            raise ValueError(
                "`draw` must be a function of an epoch number. "
                f"Received: draw={checks.shown(draw)}"
            )
        if report is not None:
            checks.instance("report", report, BatchReport, "a BatchReport")
        self.report = report
        self._draw = draw
        self._count = checks.positive_int("num_batches", num_batches, most=None)
        self._drawn = None, None
        self.set_epoch(checks.integer("initial_epoch", initial_epoch, 0))

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the current epoch; `TrainingBackup` calls it.

        Args:
            epoch: int >= 0.
        """
        self.epoch: int = checks.integer("epoch", epoch, 0)
        self._is_read = False

    def on_epoch_end(self) -> None:
        """Goes on to the next epoch, if this one was read; `fit` calls it."""
        # Keras also calls it before the first epoch, when it has read a batch
        # or two to build the model (as of Keras 3.15.1).
        if self._is_read:
            self.set_epoch(self.epoch + 1)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        if not -self._count <= index < self._count:
            raise IndexError(
                f"`index` must be in [{-self._count}, {self._count}). "
                f"Received: index={index}"
            )
        index %= self._count
        batch = self._batch(self.epoch, index)
        self._is_read |= index == self._count - 1
        return batch

    def __iter__(self) -> Iterator[Any]:
        for epoch, index in self._rest_of_epoch():
            yield self._batch(epoch, index)

    def to_tf_dataset(self) -> Any:
        """Returns a `tf.data.Dataset` of the same batches, of known length.

        Each iteration over it reads one epoch of this object, so `repeat()`
        reads one after the other. Batches are read one at a time; `prefetch`
        reads ahead.

        Returns:
            `tf.data.Dataset`, of tensors whose sizes are unknown.

        Raises:
            ImportError: TensorFlow is not installed.
        """
        tf = packages.tensorflow()
        signature = tree.map_structure(
            lambda x: tf.TensorSpec((None,) * x.ndim, x.dtype), self[0]
        )
        dataset = tf.data.Dataset.from_generator(
            self.__iter__, output_signature=signature
        )
        return dataset.apply(tf.data.experimental.assert_cardinality(len(self)))

    def to_torch_loader(self, **kwargs: Any) -> Any:
        """Returns a `torch.utils.data.DataLoader` of the same batches.

        Each iteration over it reads one epoch of this object.

        Args:
            **kwargs: further arguments of the loader, such as `num_workers`
                and `pin_memory`.

        Returns:
            `torch.utils.data.DataLoader`, of PyTorch tensors on the CPU.

        Raises:
            ImportError: PyTorch is not installed.
        """
        try:
            from torch.utils.data import DataLoader
        except ImportError as error:
            raise ImportError(
                "`to_torch_loader` needs PyTorch, which is not installed: "
                "pip install keras-attn[torch]"
            ) from error
        return DataLoader(
            _OfEpoch(self), sampler=_Sampler(self), batch_size=None, **kwargs
        )

    def _batch(self, epoch, index):
        drawn, read = self._drawn
        if drawn != epoch:
            read = self._draw(epoch)
            # In one assignment: other threads may be reading.
            self._drawn = epoch, read
        return read(index)

    def _rest_of_epoch(self):
        """Yields (epoch, batch) numbers; ends the epoch before the last one."""
        epoch = self.epoch
        for index in range(self._count):
            if index == self._count - 1:
                # Keras does not ask for more (as of Keras 3.15.1).
                self.set_epoch(epoch + 1)
            yield epoch, index


class _OfEpoch:
    """The batches by epoch and number: worker processes have old copies."""

    def __init__(self, dataset):
        self._dataset = dataset

    def __len__(self):
        return len(self._dataset)

    def __getitem__(self, key):
        return self._dataset._batch(*key)


class _Sampler:
    def __init__(self, dataset):
        self._dataset = dataset

    def __len__(self):
        return len(self._dataset)

    def __iter__(self):
        return self._dataset._rest_of_epoch()


def check_epochs(seed: int, initial_epoch: int) -> None:
    """Raises ValueError unless both are integers, at least 0."""
    for name, value in (("seed", seed), ("initial_epoch", initial_epoch)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(
                f"`{name}` must be an integer, at least 0. "
                f"Received: {name}={checks.shown(value)}"
            )
