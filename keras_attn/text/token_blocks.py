"""token_blocks: fixed-length blocks of a token stream."""

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.batch_stream import batch_stream, check_epochs

_NONE = -1


def token_blocks(
    token_ids,
    length,
    batch_size,
    *,
    shuffle=True,
    seed=0,
    initial_epoch=0,
    pad_id=0,
):
    """Splits a token stream into blocks, for training a language model.

    A block that begins at token i is

        inputs = x[i] .. x[i + T - 1],  labels = x[i + 1] .. x[i + T]

    With `shuffle=True`, each epoch starts at a different offset, so that the
    block boundaries change, and shuffles the blocks; an incomplete last batch
    is dropped. With `shuffle=False`, for evaluation, every token but the first
    is a label exactly once.

    Args:
        token_ids: int (N,), the whole text.
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

    Returns:
        A tf.data.Dataset of `(inputs, labels)`, both int32 (B, T), of known
        length. `set_epoch(epoch)` sets the number of the next epoch, as for
        `token_batches`. Use `model.fit(dataset, shuffle=False)`.

    Raises:
        ValueError: token ids that are not integers of rank 1, or too few.
        ImportError: tensorflow-text is not installed.

    Examples:
        >>> dataset = keras_attn.text.token_blocks(
        ...     np.arange(10), length=4, batch_size=2, shuffle=False)
        >>> for inputs, labels in dataset.as_numpy_iterator():
        ...     print(inputs.tolist(), labels.tolist())
        [[0, 1, 2, 3], [4, 5, 6, 7]] [[1, 2, 3, 4], [5, 6, 7, 8]]
        [[8, 0, 0, 0], [0, 0, 0, 0]] [[9, -1, -1, -1], [-1, -1, -1, -1]]
    """
    arguments.batch_shape(length, batch_size)
    checks.boolean("shuffle", shuffle)
    check_epochs(seed, initial_epoch)
    arguments.one_id("pad_id", pad_id)
    ids = arguments.id_array("token_ids", token_ids, rank=1)
    needed = length * batch_size + 1 if shuffle else 2
    if len(ids) < needed:
        raise ValueError(
            f"`token_ids` must have at least {needed} tokens, for one batch. "
            f"Received: {len(ids)}"
        )
    blocks = (len(ids) - 1) // length
    if shuffle:
        count = blocks // batch_size
        make = _shuffled(ids, length, batch_size, seed)
    else:
        count = -(-(len(ids) - 1) // (length * batch_size))
        make = _in_order(ids, length, batch_size, count, pad_id)
    stream, set_epoch = batch_stream(make, count, 2, initial_epoch)
    stream.set_epoch = set_epoch
    return stream


def _shuffled(ids, length, batch_size, seed):
    blocks = (len(ids) - 1) // length
    count = blocks // batch_size
    # Tokens that the blocks leave over, plus one block if the batches leave
    # blocks over: the range of the random offset.
    spare = len(ids) - 1 - blocks * length
    if blocks % batch_size:
        spare += length
        blocks -= 1
    steps = np.arange(length)

    def batches(epoch):
        random = np.random.default_rng([seed, epoch])
        first = random.integers(min(spare, length - 1) + 1)
        order = random.permutation(blocks)[: count * batch_size]
        for rows in order.reshape(count, batch_size):
            indices = first + rows[:, None] * length + steps
            yield ids[indices], ids[indices + 1]

    return batches


def _in_order(ids, length, batch_size, count, pad_id):
    size = count * batch_size * length
    inputs, labels = (
        np.full(size, pad_id, "int32"),
        np.full(size, _NONE, "int32"),
    )
    inputs[: len(ids) - 1], labels[: len(ids) - 1] = ids[:-1], ids[1:]
    shape = count, batch_size, length
    inputs, labels = inputs.reshape(shape), labels.reshape(shape)
    return lambda epoch: zip(inputs, labels, strict=True)
