"""packed_batches: batches whose rows hold several sentences each."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.batch_report import BatchReport
from keras_attn.text.id_rows import IdRows
from keras_attn.text.shards import MOST_ROWS, check_shard, rows_of
from keras_attn.text.token_batches import shared_pad_id
from keras_attn.text.token_dataset import TokenDataset, check_epochs


def packed_batches(
    source: Sequence[str],
    target: Sequence[str] | None,
    tokenizer: Any,
    *,
    tokens_per_batch: int = 4096,
    max_length: int = 256,
    rows_multiple_of: int = 1,
    shuffle: bool = True,
    seed: int = 0,
    initial_epoch: int = 0,
    shard: tuple[int, int] = (0, 1),
) -> TokenDataset:
    """Packs sentences into rows with hardly any padding, for `model.fit`.

    A pair with source tokens x1..xm and target tokens y1..yn becomes

        source = x1 .. xm end,  target = start y1 .. yn,  labels = y1 .. yn end

    and a text without a target `start x1 .. xm` with labels `x1 .. xm end`.
    Each sentence goes to the first row that has room for it on both sides, and
    a new row is opened if there is none (first fit). `packing_ids` number the
    sentences of a row, so that the model computes each as if it were alone.
    All batches have one shape (packing as in Krell et al. 2021,
    https://arxiv.org/abs/2107.02027).

    All texts are encoded and packed once, at the start, and stay in memory. The
    last batch is filled up with rows of padding, which a loss that masks
    padding ignores.

    Args:
        source: list of str.
        target: list of str, of the same length, for a `Transformer`; or None,
            for a `GPT`.
        tokenizer: one for both sides, or a tuple (source, target), as for
            `token_batches`.
        tokens_per_batch: int. Ids on each side of a batch, padding included.
        max_length: int. Ids per row, on each side. Sentences that do not fit
            into a row are dropped, not truncated; the report counts them.
        rows_multiple_of: int. The rows of every batch are a multiple of it, and
            at least as many, even if the batch then exceeds `tokens_per_batch`.
            Default 1.
        shuffle: bool. Whether to pack the sentences in a random order, the same
            in all epochs, and to shuffle the rows in each epoch.
        seed: int. The order of an epoch depends only on the seed, the epoch
            number and the data.
        initial_epoch: int. The number of the first epoch.
        shard: tuple (index, count), as for `token_batches`. Default (0, 1).

    Returns:
        A `TokenDataset` of `((source, target), labels)`, where `source` and
        `target` are dicts of int32 (B, `max_length`) `"token_ids"` and
        `"packing_ids"`, and labels are int32 (B, `max_length`); without a
        target, of `(source, labels)`. Its attribute `report` is a
        `BatchReport`, whose `padding_fraction` is the waste; print it. Use
        `model.fit(dataset, shuffle=False)`.

    Raises:
        ValueError: no sentences; sides of different length; no sentence within
            `max_length`; tokenizers with different padding ids; `shard` without
            0 <= index < count.

    Examples:
        >>> from keras_attn.text import SubwordTokenizer, packed_batches
        >>> source, target = ["one two", "two"], ["eins zwei", "zwei"]
        >>> tokenizer = SubwordTokenizer.train_from_lines(source + target, 300)
        >>> dataset = packed_batches(
        ...     source, target, tokenizer, max_length=6, tokens_per_batch=6,
        ...     shuffle=False)
        >>> for (source_rows, target_rows), labels in dataset:
        ...     print(source_rows["packing_ids"].tolist())
        [[1, 1, 1, 2, 2, 0]]
        >>> dataset.report.pairs, dataset.report.source_tokens
        (2, 5)
    """
    checks.integer("tokens_per_batch", tokens_per_batch, 1, arguments.MOST_IDS)
    checks.integer("max_length", max_length, 1, arguments.LONGEST_ROW)
    shard = check_shard(shard)
    checks.integer(
        "rows_multiple_of", rows_multiple_of, 1, MOST_ROWS // shard[1]
    )
    checks.boolean("shuffle", shuffle)
    check_epochs(seed, initial_epoch)
    texts = [list(arguments.text_lines("source", source))]
    if target is not None:
        texts.append(list(arguments.text_lines("target", target)))
    if len(texts[0]) != len(texts[-1]) or not texts[0]:
        raise ValueError(
            "`source` and `target` must be of equal length, at least one. "
            f"Received: {len(texts[0])} sources, {len(texts[-1])} targets"
        )
    pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,) * 2
    pad_id = shared_pad_id(pair)
    if target is None and pair[0] is not pair[1]:
        raise ValueError(
            "`tokenizer` must be one tokenizer if `target` is None. Received: "
            "a tuple"
        )
    sides = [
        IdRows.of(lines, one)
        # zip ends with the texts: there may be no target.
        for lines, one in zip(texts, pair, strict=False)
    ]
    # The end or the start adds one id.
    lengths = np.stack([side.lengths for side in sides]) + 1
    kept = np.flatnonzero(lengths.max(0) <= max_length)
    if not len(kept):
        raise ValueError(
            "`max_length` must leave at least one sentence. Received: "
            f"max_length={max_length}, shortest sentence of length "
            f"{lengths.max(0).min()}"
        )
    if shuffle:
        kept = kept[np.random.default_rng(seed).permutation(len(kept))]
    lengths = lengths[:, kept]
    packing = first_fit(lengths, max_length)
    shape = packing.count, max_length

    def arrays(side, **ends):
        offsets = packing.offsets[side]
        return _filled(
            sides[side], kept, packing, offsets, shape, pad_id, **ends
        )

    numbers = _ranks(packing.rows) + 1
    packing_ids = [
        _spread(numbers, packing, side, lengths[side], shape)
        for side in range(len(sides))
    ]
    last = len(sides) - 1
    start, end = pair[1].start_id, pair[1].end_id
    ids = [arrays(last, first=start)]
    if last:
        ids.insert(0, arrays(0, last=pair[0].end_id))
    labels = arrays(last, last=end)
    step = rows_multiple_of * shard[1]
    rows = max(step, tokens_per_batch // max_length // step * step)
    batches = -(-packing.count // rows)
    totals = lengths.sum(1).tolist()
    report = BatchReport(
        pairs=len(kept),
        dropped=len(texts[0]) - len(kept),
        batches=batches,
        source_tokens=totals[0],
        target_tokens=totals[1] if last else 0,
        padding_fraction=1
        - sum(totals) / (batches * rows * max_length * len(sides)),
        shapes=((rows, max_length, max_length * last),),
    )
    inputs = tuple(zip(ids, packing_ids, strict=True))
    draw = functools.partial(
        _drawn, inputs, labels, rows, batches, shuffle, seed, shard
    )
    return TokenDataset(draw, batches, initial_epoch, report)


class Packing(NamedTuple):
    """Where the sentences are.

    Args:
        rows: int (N,). The row of each sentence.
        offsets: int (sides, N). The index of its first id in the row.
        count: int. Number of rows.
    """

    rows: np.ndarray
    offsets: np.ndarray
    count: int


def first_fit(lengths: np.ndarray, capacity: int) -> Packing:
    """Packs sentences into rows: each into the first one with room for it.

    Args:
        lengths: int (sides, N), from 1 to `capacity`: ids on each side.
        capacity: int. Ids of a row on each side.

    Returns:
        `Packing`.

    Examples:
        >>> from keras_attn.text.packed_batches import first_fit
        >>> packing = first_fit(np.array([[5, 4, 3, 2]]), 8)
        >>> packing.rows.tolist(), packing.offsets.tolist()
        ([0, 1, 0, 1], [[0, 0, 5, 4]])
    """
    sides, size = lengths.shape
    rows, offsets = np.zeros(size, "int64"), np.zeros((sides, size), "int64")
    least = lengths.min(1)
    # Rows with room for the shortest sentence, in the order of their numbers.
    room, numbers = np.zeros((sides, 0), "int64"), np.zeros(0, "int64")
    count = 0
    for index in range(size):
        needed = lengths[:, index]
        fits = (room >= needed[:, None]).all(0)
        chosen = int(fits.argmax()) if fits.any() else len(numbers)
        if chosen == len(numbers):
            room = np.concatenate([room, np.full((sides, 1), capacity)], 1)
            numbers = np.append(numbers, count)
            count += 1
        rows[index] = numbers[chosen]
        offsets[:, index] = capacity - room[:, chosen]
        room[:, chosen] -= needed
        if (room[:, chosen] < least).any():
            room = np.delete(room, chosen, 1)
            numbers = np.delete(numbers, chosen)
    return Packing(rows, offsets, count)


def _ranks(rows):
    """Returns how many earlier sentences the row of each has."""
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows)
    ranks = np.empty(len(rows), "int64")
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    ranks[order] = np.arange(len(rows)) - starts
    return ranks


def _slots(packing, offsets, lengths, width):
    """Returns the flat indices of runs of ids, one run after the other."""
    begin = packing.rows * width + offsets
    inside = np.arange(lengths.sum()) - np.repeat(
        np.cumsum(lengths) - lengths, lengths
    )
    return np.repeat(begin, lengths) + inside


def _spread(values, packing, side, lengths, shape):
    """Returns rows with a value per sentence, and a last row of zeros."""
    count, width = shape
    out = np.zeros((count + 1, width), "int32")
    slots = _slots(packing, packing.offsets[side], lengths, width)
    out.reshape(-1)[slots] = np.repeat(values, lengths)
    return out


def _filled(side, kept, packing, offsets, shape, pad_id, first=None, last=None):
    """Returns the rows of ids, and a last row of padding."""
    count, width = shape
    out = np.full((count + 1, width), pad_id, "int32")
    flat, lengths = out.reshape(-1), side.lengths[kept]
    begin = packing.rows * width + offsets
    if first is not None:
        flat[begin] = first
        offsets = offsets + 1
    starts = (np.cumsum(side.lengths) - side.lengths)[kept]
    index = np.arange(lengths.sum()) + np.repeat(
        starts - (np.cumsum(lengths) - lengths), lengths
    )
    flat[_slots(packing, offsets, lengths, width)] = side.ids[index]
    if last is not None:
        flat[begin + lengths] = last
    return out


def _drawn(inputs, labels, rows, batches, shuffle, seed, shard, epoch):
    """Returns a function of a batch number in an epoch, for `TokenDataset`."""
    order = np.full(batches * rows, -1)
    count = len(labels) - 1
    order[:count] = np.arange(count)
    if shuffle:
        random = np.random.default_rng([seed, epoch])
        order[:count] = random.permutation(count)
    order = order.reshape(batches, rows)
    return functools.partial(_batch, inputs, labels, order, shard)


def _batch(inputs, labels, order, shard, index):
    rows = rows_of(shard, order[index])
    sides = tuple(
        {"token_ids": ids[rows], "packing_ids": packing[rows]}
        for ids, packing in inputs
    )
    return sides if len(sides) == 2 else sides[0], labels[rows]
