"""token_streams: batches whose rows continue the previous batch."""

import functools
from collections.abc import Sequence

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.shards import check_batch_size, check_shard, rows_of
from keras_attn.text.token_dataset import TokenDataset, check_epochs
from keras_attn.typing import TensorLike

_NONE = -1


def token_streams(
    documents: Sequence[TensorLike],
    length: int,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    initial_epoch: int = 0,
    pad_id: int = 0,
    shard: tuple[int, int] = (0, 1),
) -> TokenDataset:
    """Splits documents into segments, for models with segment recurrence.

    The documents are concatenated and split into `batch_size` rows of equal
    length, and a batch is the next segment of every row: row b of a batch
    continues row b of the previous one. Labels are the next tokens; the last
    token of a document has none. `document_starts` marks the first token of
    each document and of each row, where the memory must be reset.

    Args:
        documents: list of int (N,), one per document; or int (N,), one
            document. Arrays that NumPy maps from a file are not read into
            memory.
        length: int. T, tokens per segment.
        batch_size: int. B, rows.
        shuffle: bool. True for training: each epoch shuffles the documents and
            shifts the segment boundaries, and tokens that do not fill a segment
            in all rows are dropped. False for evaluation: every token but the
            first of a document is a label exactly once.
        seed: int. The order of an epoch depends only on the seed, the epoch
            number and the documents.
        initial_epoch: int. The number of the first epoch.
        pad_id: int. With `shuffle=False`, pads the rows; labels there are -1.
            Default 0.
        shard: tuple (index, count). The rows of each batch that this dataset
            reads, for training in several processes: each passes its index and
            the same other arguments. All have equally many batches, of
            `batch_size // count` rows. Default (0, 1): all rows.

    Returns:
        A `TokenDataset` of `(inputs, labels)`, `inputs` a dict of
        `"token_ids"` and `"document_starts"` (0 or 1), all int32 (B, T); labels
        are -1 where there is none, which `SequenceCrossentropy(pad_id=-1)`
        ignores. All batches have one shape. Use
        `model.fit(dataset, shuffle=False)`.

    Raises:
        ValueError: documents that are not integers, or too few tokens;
            `shard` without 0 <= index < count, or whose count does not divide
            `batch_size`.

    Examples:
        >>> dataset = keras_attn.text.token_streams(
        ...     [[1, 2, 3, 4], [5, 6, 7]], length=2, batch_size=2,
        ...     shuffle=False)
        >>> for inputs, labels in dataset:
        ...     print(*(x.tolist() for x in inputs.values()), labels.tolist())
        [[1, 2], [5, 6]] [[1, 0], [1, 0]] [[2, 3], [6, 7]]
        [[3, 4], [7, 0]] [[0, 0], [0, 0]] [[4, -1], [-1, -1]]
    """
    arguments.batch_shape(length, batch_size)
    shard = check_shard(shard)
    check_batch_size(batch_size, shard)
    checks.boolean("shuffle", shuffle)
    check_epochs(seed, initial_epoch)
    arguments.one_id("pad_id", pad_id)
    documents = _checked(documents)
    total = sum(map(len, documents))
    needed = length * batch_size if shuffle else 1
    if total < needed:
        raise ValueError(
            f"`documents` must have at least {needed} tokens, for one batch. "
            f"Received: {total}"
        )
    if shuffle:
        count = total // batch_size // length
    else:
        count = -(-total // (length * batch_size))

    rows = rows_of(shard, count * length * np.arange(batch_size))
    draw = functools.partial(
        _drawn, documents, length, rows, pad_id, shuffle, seed
    )
    return TokenDataset(draw, count, initial_epoch)


def _drawn(documents, length, rows, pad_id, shuffle, seed, epoch):
    """Returns a function of a batch number in an epoch, for `TokenDataset`."""
    first = 0
    if shuffle:
        random = np.random.default_rng([seed, epoch])
        documents = [documents[i] for i in random.permutation(len(documents))]
        first = int(random.integers(sum(map(len, documents))))
    begins = np.cumsum([0, *map(len, documents)])
    segment = functools.partial(
        _segment, documents, begins, length, pad_id, shuffle
    )
    return functools.partial(_batch, segment, first + rows, length)


def _batch(segment, rows, length, index):
    segments = [segment(row + index * length) for row in rows]
    ids, starts, labels = map(np.stack, zip(*segments, strict=True))
    if index == 0:
        starts[:, 0] = 1
    return {"token_ids": ids, "document_starts": starts}, labels


def _segment(documents, begins, length, pad_id, is_cyclic, start):
    """Returns ids, starts and labels of a part of the stream, int32 (T,).

    A cyclic stream continues with the first document after the last.
    """
    ids = np.full(length, pad_id, "int32")
    starts = np.zeros(length, "int32")
    labels = np.full(length, _NONE, "int32")
    if is_cyclic:
        start %= begins[-1]
    number = int(np.searchsorted(begins, start, side="right")) - 1
    offset, filled = start - begins[number], 0
    while filled < length and (is_cyclic or number < len(documents)):
        document = documents[number % len(documents)]
        rest = document[offset : offset + length - filled + 1]
        size = min(len(rest), length - filled)
        ids[filled : filled + size] = rest[:size]
        labels[filled : filled + len(rest) - 1] = rest[1:]
        starts[filled] = offset == 0
        filled, number, offset = filled + size, number + 1, 0
    return ids, starts, labels


def _checked(documents):
    if len(getattr(documents, "shape", ())) == 1:
        documents = [documents]
    documents = arguments.text_list(
        "documents", documents, "a list of documents, each a list of ids"
    )
    return [
        arguments.mapped_ids("documents", document, number)
        for number, document in enumerate(documents)
        # An empty list has no integers.
        if not hasattr(document, "__len__") or len(document)
    ]
