"""token_blocks: fixed-length blocks of a token stream."""

import functools

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.shards import check_batch_size, check_shard, rows_of
from keras_attn.text.token_dataset import TokenDataset, check_epochs
from keras_attn.typing import TensorLike

_NONE = -1


def token_blocks(
    token_ids: TensorLike,
    length: int,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    initial_epoch: int = 0,
    pad_id: int = 0,
    shard: tuple[int, int] = (0, 1),
) -> TokenDataset:
    """Splits a token stream into blocks, for training a language model.

    A block that begins at token i is

        inputs = x[i] .. x[i + T - 1],  labels = x[i + 1] .. x[i + T]

    With `shuffle=True`, each epoch starts at a different offset, so that the
    block boundaries change, and shuffles the blocks; an incomplete last batch
    is dropped. With `shuffle=False`, for evaluation, every token but the first
    is a label exactly once.

    Args:
        token_ids: int (N,), the whole text. An array that NumPy maps from a
            file, as by `np.load(path, mmap_mode="r")`, is not read into memory.
        length: int. T, tokens per block.
        batch_size: int. B, blocks per batch.
        shuffle: bool. True for training, False for evaluation. Default True.
        seed: int. The order of an epoch depends only on the seed, the epoch
            number and the length of the stream, so it is the same in every
            process.
        initial_epoch: int. The number of the first epoch.
        pad_id: int. With `shuffle=False`, pads the last block and the last
            batch; labels there are -1, which `SequenceCrossentropy(pad_id=-1)`
            ignores. Default 0.
        shard: tuple (index, count). The rows of each batch that this dataset
            reads, for training in several processes: each passes its index and
            the same other arguments. All have equally many batches, of
            `batch_size // count` rows. Default (0, 1): all rows.

    Returns:
        A `TokenDataset` of `(inputs, labels)`, both int32 (B, T), all of one
        shape. Use `model.fit(dataset, shuffle=False)`.

    Raises:
        ValueError: token ids that are not integers of rank 1, or too few;
            `shard` without 0 <= index < count, or whose count does not divide
            `batch_size`.

    Examples:
        >>> dataset = keras_attn.text.token_blocks(
        ...     np.arange(10), length=4, batch_size=2, shuffle=False)
        >>> for inputs, labels in dataset:
        ...     print(inputs.tolist(), labels.tolist())
        [[0, 1, 2, 3], [4, 5, 6, 7]] [[1, 2, 3, 4], [5, 6, 7, 8]]
        [[8, 0, 0, 0], [0, 0, 0, 0]] [[9, -1, -1, -1], [-1, -1, -1, -1]]
    """
    arguments.batch_shape(length, batch_size)
    shard = check_shard(shard)
    check_batch_size(batch_size, shard)
    checks.boolean("shuffle", shuffle)
    check_epochs(seed, initial_epoch)
    arguments.one_id("pad_id", pad_id)
    ids = arguments.mapped_ids("token_ids", token_ids)
    needed = length * batch_size + 1 if shuffle else 2
    if len(ids) < needed:
        raise ValueError(
            f"`token_ids` must have at least {needed} tokens, for one batch. "
            f"Received: {len(ids)}"
        )
    if shuffle:
        count = (len(ids) - 1) // length // batch_size
        draw = functools.partial(
            _shuffled, ids, length, batch_size, seed, shard
        )
    else:
        count = -(-(len(ids) - 1) // (length * batch_size))
        read = functools.partial(
            _in_order, ids, length, batch_size, pad_id, shard
        )
        draw = functools.partial(_every_epoch, read)
    return TokenDataset(draw, count, initial_epoch)


def _every_epoch(read, epoch):
    return read


def _shuffled(ids, length, batch_size, seed, shard, epoch):
    blocks = (len(ids) - 1) // length
    count = blocks // batch_size
    # Tokens that the blocks leave over, plus one block if the batches leave
    # blocks over: the range of the random offset.
    spare = len(ids) - 1 - blocks * length
    if blocks % batch_size:
        spare += length
        blocks -= 1
    random = np.random.default_rng([seed, epoch])
    first = random.integers(min(spare, length - 1) + 1)
    order = random.permutation(blocks)[: count * batch_size]
    starts = first + length * order.reshape(count, batch_size)
    return functools.partial(_blocks, ids, length, starts, shard)


def _blocks(ids, length, starts, shard, index):
    indices = rows_of(shard, starts[index])[:, None] + np.arange(length)
    return ids[indices].astype("int32"), ids[indices + 1].astype("int32")


def _in_order(ids, length, batch_size, pad_id, shard, index):
    rows = rows_of(shard, range(index * batch_size, (index + 1) * batch_size))
    shape = len(rows), length
    found = ids[rows.start * length : rows.stop * length + 1]
    size = max(len(found) - 1, 0)
    inputs = np.full(shape[0] * length, pad_id, "int32")
    labels = np.full(shape[0] * length, _NONE, "int32")
    inputs[:size], labels[:size] = found[:size], found[1:]
    return inputs.reshape(shape), labels.reshape(shape)
