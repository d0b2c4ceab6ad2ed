"""token_batches: padded batches of text pairs for `model.fit`."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments
from keras_attn.text.batch_report import BatchReport
from keras_attn.text.id_rows import IdRows
from keras_attn.text.length_buckets import best_buckets
from keras_attn.text.shards import MOST_ROWS, check_shard, rows_of
from keras_attn.text.token_dataset import TokenDataset, check_epochs


def token_batches(
    source: Sequence[str],
    target: Sequence[str],
    tokenizer: Any,
    *,
    tokens_per_batch: int = 4096,
    max_length: int = 256,
    buckets: int = 3,
    rows_multiple_of: int = 1,
    shuffle: bool = True,
    seed: int = 0,
    initial_epoch: int = 0,
    labels: bool = True,
    shard: tuple[int, int] = (0, 1),
) -> TokenDataset:
    """Batches pairs of texts by their number of tokens, for `model.fit`.

    A pair with source tokens x1..xm and target tokens y1..yn becomes

        source = x1 .. xm end,  target = start y1 .. yn,  labels = y1 .. yn end

    Pairs of similar length share a bucket, and all batches of a bucket have the
    same shape. So there are at most `buckets` shapes, whatever the data, and
    TensorFlow and JAX compile at most `buckets` training steps. The bucket
    boundaries are those with the least padding for the given data. A bucket of
    lengths up to L has `tokens_per_batch // L` rows, rounded down to a multiple
    of `rows_multiple_of`, so that all batches have about the same number of
    tokens (Vaswani et al., 2017, section 5.1, batch sentence pairs by length in
    this way).

    All texts are encoded once, at the start, and stay in memory. The last batch
    of a bucket is filled up with rows of padding, which a loss that masks
    padding ignores.

    Args:
        source: list of str.
        target: list of str, of the same length.
        tokenizer: one for both sides, or a tuple (source, target): each with
            `encode`, `pad_id`, `start_id` and `end_id` as in
            `SubwordTokenizer`. Both must have the same padding id.
        tokens_per_batch: int. Ids on each side of a batch, padding included.
        max_length: int. Maximum ids per side, end or start included. Longer
            pairs are dropped, not truncated; the report counts them.
        buckets: int. Maximum number of shapes.
        rows_multiple_of: int. The rows of every batch are a multiple of it, and
            at least as many, even if the batch then exceeds `tokens_per_batch`.
            Training on N devices of a process needs a multiple of N. Default 1.
        shuffle: bool. Whether to shuffle pairs and batches in each epoch. If
            False, pairs keep their order within a bucket (and so overall with
            `buckets=1`), and short buckets come first, except that the second
            batch is the first one of the longest bucket: on TensorFlow, Keras
            takes an axis for constant if the first two batches agree in it (as
            of Keras 3.15.1).
        seed: int. The order of an epoch depends only on the seed, the epoch
            number and the data, so it is the same in every process.
        initial_epoch: int. The number of the first epoch.
        labels: bool. If False, batches are `((source, target),)`, for
            `model.predict`.
        shard: tuple (index, count). The part that this dataset reads, for
            training in several processes: each passes its index and the same
            other arguments. All have equally many batches, of the same shapes
            in the same order. Together, in the order of the index, their rows
            are the batches of one process with
            `rows_multiple_of=count * rows_multiple_of`; `tokens_per_batch` and
            the report are those of the whole batches. Default (0, 1): all.

    Returns:
        A `TokenDataset` of `((source, target), labels)`, int32 (B, S), (B, T)
        and (B, T). Its attribute `report` is a `BatchReport`; print it. Use
        `model.fit(dataset, shuffle=False)`.

    Raises:
        ValueError: no pairs; sides of different length; no pair within
            `max_length`; tokenizers with different padding ids; `shard` without
            0 <= index < count.

    Examples:
        >>> from keras_attn.text import SubwordTokenizer, token_batches
        >>> source, target = ["one two", "two"], ["eins zwei", "zwei"]
        >>> tokenizer = SubwordTokenizer.train_from_lines(source + target, 300)
        >>> dataset = token_batches(
        ...     source, target, tokenizer, tokens_per_batch=12, buckets=1
        ... )
        >>> for (source_ids, target_ids), labels in dataset:
        ...     print(source_ids.shape, target_ids.shape)
        (4, 3) (4, 3)
        >>> dataset.report.pairs, dataset.report.source_tokens
        (2, 5)
    """
    checks.integer("tokens_per_batch", tokens_per_batch, 1, arguments.MOST_IDS)
    checks.positive_int("max_length", max_length, most=None)
    checks.positive_int("buckets", buckets, most=None)
    shard = check_shard(shard)
    checks.integer(
        "rows_multiple_of", rows_multiple_of, 1, MOST_ROWS // shard[1]
    )
    checks.boolean("shuffle", shuffle)
    checks.boolean("labels", labels)
    check_epochs(seed, initial_epoch)
    source, target = _sides(source, target)
    pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,) * 2
    pad_id = _shared_pad_id(pair)
    source, target = IdRows.of(source, pair[0]), IdRows.of(target, pair[1])

    # The end of a source and the start of a target add one id per side.
    lengths = np.stack([source.lengths, target.lengths]) + 1
    kept = np.flatnonzero(lengths.max(0) <= max_length)
    if not len(kept):
        raise ValueError(
            "`max_length` must leave at least one pair. Received: max_length="
            f"{max_length}, shortest pair of length {lengths.max(0).min()}"
        )
    lengths = lengths[:, kept]
    found = best_buckets(
        *lengths, tokens_per_batch, buckets, rows_multiple_of * shard[1]
    )
    found = _with_varying_axes(found)

    def arrays(bucket):
        pairs, width = kept[bucket.pairs], bucket.target_length
        yield source.padded(
            pairs, bucket.source_length, pad_id, last=pair[0].end_id
        )
        yield target.padded(pairs, width, pad_id, first=pair[1].start_id)
        if labels:
            yield target.padded(pairs, width, pad_id, last=pair[1].end_id)

    sides = [tuple(arrays(bucket)) for bucket in found]
    count = sum(bucket.batches for bucket in found)
    source_tokens, target_tokens = lengths.sum(1).tolist()
    slots = sum(
        bucket.batches
        * bucket.rows
        * (bucket.source_length + bucket.target_length)
        for bucket in found
    )
    report = BatchReport(
        pairs=len(kept),
        dropped=len(source.lengths) - len(kept),
        batches=count,
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        padding_fraction=1 - (source_tokens + target_tokens) / slots,
        shapes=tuple(bucket[1:] for bucket in found),
    )
    draw = functools.partial(_drawn, found, sides, shuffle, seed, shard)
    return TokenDataset(draw, count, initial_epoch, report)


def _with_varying_axes(buckets):
    """Pads so that an axis varies between the first and the last bucket.

    Or else in none: on TensorFlow, Keras takes an axis for constant if it has
    the same size in two batches (as of Keras 3.15.1).
    """
    for name in "source_length", "target_length":
        lengths = [getattr(bucket, name) for bucket in buckets]
        if lengths[0] == lengths[-1]:
            longest = {name: max(lengths)}
            buckets = [bucket._replace(**longest) for bucket in buckets]
    return buckets


def _drawn(buckets, sides, shuffle, seed, shard, epoch):
    """Returns a function of a batch number in an epoch, for `TokenDataset`."""
    order = batch_order(buckets, shuffle, seed, epoch)
    return functools.partial(_batch, sides, order, shard)


def _batch(sides, order, shard, index):
    number, rows = order[index]
    rows = rows_of(shard, rows)
    ids = tuple(side[rows] for side in sides[number])
    return (ids[:2], *ids[2:])


def batch_order(
    buckets: Sequence[Any], shuffle: bool, seed: int, epoch: int
) -> list[Any]:
    """Returns the batches of an epoch.

    The first two are of the first and of the last bucket.

    Args:
        buckets: list of Bucket.
        shuffle: bool. Whether to shuffle pairs and batches.
        seed: int.
        epoch: int.

    Returns:
        list of tuple (bucket number, rows): rows, int (bucket.rows,), are
        indices into the pairs of the bucket; -1 is a padding row.
    """
    batches = []
    random = np.random.default_rng([seed, epoch])
    for number, bucket in enumerate(buckets):
        rows = np.full(bucket.batches * bucket.rows, -1)
        size = len(bucket.pairs)
        rows[:size] = random.permutation(size) if shuffle else np.arange(size)
        for part in rows.reshape(bucket.batches, bucket.rows):
            batches.append((number, part))
    # The first two must be of different buckets: see `_with_varying_axes`.
    fixed = []
    if len(buckets) > 1:
        second = batches.pop(-buckets[-1].batches)
        fixed = [batches.pop(0), second]
    if shuffle:
        random.shuffle(batches)
    return fixed + batches


def _sides(source, target):
    """Returns both sides as lists, or raises ValueError."""
    source, target = (
        list(arguments.text_lines(name, side))
        for name, side in (("source", source), ("target", target))
    )
    if len(source) != len(target) or not source:
        raise ValueError(
            "`source` and `target` must be of equal length, at least one. "
            f"Received: {len(source)} sources, {len(target)} targets"
        )
    return source, target


def _shared_pad_id(tokenizers):
    """Returns the padding id of a pair of tokenizers, or raises ValueError."""
    if len(tokenizers) != 2:
        raise ValueError(
            "`tokenizer` must be one tokenizer or a tuple (source, target). "
            f"Received: a tuple of length {len(tokenizers)}"
        )
    for one in tokenizers:
        if isinstance(one, type) or not callable(getattr(one, "encode", None)):
            raise ValueError(
                "`tokenizer` must be a tokenizer, with a method `encode`. "
                f"Received: {type(one).__name__}"
            )
        for name in ("pad_id", "start_id", "end_id"):
            number = getattr(one, name, None)
            integer = isinstance(number, (int, np.integer))
            if not integer or isinstance(number, bool):
                raise ValueError(
                    f"`tokenizer` must have an integer `{name}`. "
                    f"Received: {type(one).__name__} with "
                    f"{name}={checks.shown(number)}"
                )
    source, target = tokenizers
    if source.pad_id != target.pad_id:
        raise ValueError(
            "`tokenizer` must have the same pad_id on both sides. Received: "
            f"pad_id={source.pad_id} for the source, {target.pad_id} for the "
            "target"
        )
    return source.pad_id
