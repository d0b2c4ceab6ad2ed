"""token_streams: batches whose rows continue the previous batch."""

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.batch_stream import batch_stream, check_epochs

_NONE = -1


def token_streams(
    documents,
    length,
    batch_size,
    *,
    shuffle=True,
    seed=0,
    initial_epoch=0,
    pad_id=0,
):
    """Splits documents into segments, for models with segment recurrence.

    The documents are concatenated and split into `batch_size` rows of equal
    length, and a batch is the next segment of every row: row b of a batch
    continues row b of the previous one. Labels are the next tokens; the last
    token of a document has none. `document_starts` marks the first token of
    each document and of each row, where the memory must be reset.

    Args:
        documents: list of int (N,), one per document; or int (N,), one
            document.
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

    Returns:
        A tf.data.Dataset of `(inputs, labels)`, `inputs` a dict of
        `"token_ids"` and `"document_starts"` (0 or 1), all int32 (B, T); labels
        are -1 where there is none, which `SequenceCrossentropy(pad_id=-1)`
        ignores. Its length is known. `set_epoch(epoch)` sets the number of the
        next epoch. Use `model.fit(dataset, shuffle=False)`.

    Raises:
        ValueError: documents that are not integers, or too few tokens.
        ImportError: tensorflow-text is not installed.

    Examples:
        >>> dataset = keras_attn.text.token_streams(
        ...     [[1, 2, 3, 4], [5, 6, 7]], length=2, batch_size=2,
        ...     shuffle=False)
        >>> for inputs, labels in dataset.as_numpy_iterator():
        ...     print(*(x.tolist() for x in inputs.values()), labels.tolist())
        [[1, 2], [5, 6]] [[1, 0], [1, 0]] [[2, 3], [6, 7]]
        [[3, 4], [7, 0]] [[0, 0], [0, 0]] [[4, -1], [-1, -1]]
    """
    arguments.batch_shape(length, batch_size)
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

    def batches(epoch):
        random = np.random.default_rng([seed, epoch])
        order, first = range(len(documents)), 0
        if shuffle:
            order = random.permutation(len(documents))
            first = int(random.integers(total))
        columns = _stream([documents[i] for i in order], first)
        fill = pad_id, 0, _NONE
        size = batch_size * count * length
        rows = []
        for column, empty in zip(columns, fill, strict=True):
            row = np.full(size, empty, "int32")
            row[: min(size, total)] = column[:size]
            rows.append(row.reshape(batch_size, count * length))
        ids, starts, labels = rows
        starts[:, 0] = 1
        for step in range(count):
            part = slice(step * length, (step + 1) * length)
            yield ids[:, part], starts[:, part], labels[:, part]

    stream, set_epoch = batch_stream(batches, count, 3, initial_epoch)
    stream = stream.map(
        lambda ids, starts, labels: (
            {"token_ids": ids, "document_starts": starts},
            labels,
        )
    )
    stream.set_epoch = set_epoch
    return stream


def _stream(documents, first):
    """Returns ids, starts and labels of all documents, rotated by `first`."""
    ids = np.concatenate(documents)
    labels = np.append(ids[1:], _NONE).astype("int32")
    begins = np.cumsum([0, *map(len, documents)])
    labels[begins[1:] - 1] = _NONE
    starts = np.zeros_like(ids)
    starts[begins[:-1]] = 1
    return tuple(np.roll(x, -first) for x in (ids, starts, labels))


def _checked(documents):
    if len(getattr(documents, "shape", ())) == 1:
        documents = [documents]
    documents = arguments.text_list(
        "documents", documents, "a list of documents, each a list of ids"
    )
    return [
        arguments.id_array("documents", document, rank=1, number=number)
        for number, document in enumerate(documents)
        # An empty list has no integers.
        if not hasattr(document, "__len__") or len(document)
    ]
