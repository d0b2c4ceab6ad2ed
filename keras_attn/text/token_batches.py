"""token_batches: pairs of texts in, padded batches of ids out."""

import numpy as np

from keras_attn import checks
from keras_attn.text.batch_report import BatchReport
from keras_attn.text.batch_stream import batch_order, batch_stream, check_epochs
from keras_attn.text.id_rows import IdRows
from keras_attn.text.length_buckets import best_buckets


def token_batches(
    source,
    target,
    tokenizer,
    *,
    tokens_per_batch=4096,
    max_length=256,
    buckets=3,
    shuffle=True,
    seed=0,
    initial_epoch=0,
    labels=True,
):
    """Batches pairs of texts by their number of tokens, for `model.fit`.

    A pair with source tokens x1..xm and target tokens y1..yn becomes

        source = x1 .. xm end,  target = start y1 .. yn,  labels = y1 .. yn end

    Pairs of like length share a bucket, and all batches of a bucket have one
    shape, so that a compiled model is compiled at most `buckets` times. Where
    the lengths are cut follows from the data: the cuts with the least padding.
    A bucket of lengths up to L has `tokens_per_batch // L` rows, so that every
    batch holds about as many tokens (Vaswani et al., 2017, section 5.1, batch
    sentence pairs by length in this way).

    All texts are turned into ids once, at the start, and stay in memory. The
    last batch of a bucket is filled up with rows of nothing but padding, which
    a loss that leaves padding out does not see.

    Args:
        source: list of str.
        target: list of str, as many.
        tokenizer: one for both sides, or a tuple (source, target): each with
            `encode`, `pad_id`, `start_id` and `end_id` as `SubwordTokenizer`
            has them. Both must pad with the same id.
        tokens_per_batch: int. Ids on each side of a batch, padding included.
        max_length: int. Ids of a side, the end or start included, at most.
            Longer pairs are left out, never cut; the report says how many.
        buckets: int. Number of shapes at most.
        shuffle: bool. Whether each epoch has pairs and batches in a new order.
            If False, short buckets come first, and pairs stay in their order
            within a bucket (so in their order altogether with `buckets=1`).
        seed: int. The order of an epoch depends on the seed, the number of the
            epoch and the data only: it comes back in another process.
        initial_epoch: int. The number of the first epoch. An epoch is over
            when its last batch is read; who reads a part and starts again,
            starts the same epoch again.
        labels: bool. If False, batches are `((source, target),)`, for
            `model.predict`.

    Returns:
        A tf.data.Dataset of `((source, target), labels)`, int32 (B, S), (B, T)
        and (B, T), whose length is known. Its attribute `report` is a
        `BatchReport`; print it. `set_epoch(epoch)` sets the number of the
        epoch that is read next: `TrainingBackup` asks for it. (What is made of
        the dataset, by `take` and so on, has neither.) Use
        `model.fit(dataset, shuffle=False)`: Keras warns where it is asked, as
        by default, to shuffle a dataset itself.

    Raises:
        ValueError: no pairs; sides of different length; no pair within
            `max_length`; tokenizers that disagree about padding.
        ImportError: tensorflow-text or sentencepiece is not installed.

    Examples:
        >>> from keras_attn.text import SubwordTokenizer, token_batches
        >>> source, target = ["one two", "two"], ["eins zwei", "zwei"]
        >>> tokenizer = SubwordTokenizer.train_from_lines(source + target, 300)
        >>> dataset = token_batches(
        ...     source, target, tokenizer, tokens_per_batch=12, buckets=1
        ... )
        >>> for (source_ids, target_ids), labels in dataset:
        ...     print(tuple(source_ids.shape), tuple(target_ids.shape))
        (4, 3) (4, 3)
        >>> dataset.report.pairs, dataset.report.source_tokens
        (2, 5)
    """
    checks.positive_int("tokens_per_batch", tokens_per_batch)
    checks.positive_int("max_length", max_length)
    checks.positive_int("buckets", buckets)
    check_epochs(seed, initial_epoch)
    source, target = _sides(source, target)
    pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,) * 2
    pad_id = _shared_pad_id(pair)
    source, target = IdRows.of(source, pair[0]), IdRows.of(target, pair[1])

    # The end of a source, the start of a target: one id more on each side.
    lengths = np.stack([source.lengths, target.lengths]) + 1
    kept = np.flatnonzero(lengths.max(0) <= max_length)
    if not len(kept):
        raise ValueError(
            "`max_length` must leave at least one pair. Received: max_length="
            f"{max_length}, shortest pair of length {lengths.max(0).min()}"
        )
    lengths = lengths[:, kept]
    found = best_buckets(*lengths, tokens_per_batch, buckets)

    def arrays(bucket):
        pairs, width = kept[bucket.pairs], bucket.target_length
        yield source.padded(
            pairs, bucket.source_length, pad_id, last=pair[0].end_id
        )
        yield target.padded(pairs, width, pad_id, first=pair[1].start_id)
        if labels:
            yield target.padded(pairs, width, pad_id, last=pair[1].end_id)

    sides = [tuple(arrays(bucket)) for bucket in found]

    def batches(epoch):
        for number, rows in batch_order(found, shuffle, seed, epoch):
            yield tuple(side[rows] for side in sides[number])

    count = sum(bucket.batches for bucket in found)
    stream, set_epoch = batch_stream(
        batches, count, len(sides[0]), initial_epoch
    )
    dataset = stream.map(lambda *ids: (ids[:2], *ids[2:]))
    dataset.set_epoch = set_epoch
    source_tokens, target_tokens = lengths.sum(1).tolist()
    slots = sum(
        bucket.batches
        * bucket.rows
        * (bucket.source_length + bucket.target_length)
        for bucket in found
    )
    dataset.report = BatchReport(
        pairs=len(kept),
        dropped=len(source.lengths) - len(kept),
        batches=count,
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        padding_fraction=1 - (source_tokens + target_tokens) / slots,
        shapes=tuple(bucket[1:] for bucket in found),
    )
    return dataset


def _sides(source, target):
    """Returns both sides as lists, or raises where they are no pairs."""
    for name, side in (("source", source), ("target", target)):
        if isinstance(side, (str, bytes)):
            raise ValueError(
                f"`{name}` must be a list of texts. Received: one text {side!r}"
            )
    source, target = list(source), list(target)
    if len(source) != len(target) or not source:
        raise ValueError(
            "`source` and `target` must hold as many texts each, at least one. "
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
    source, target = tokenizers
    if source.pad_id != target.pad_id:
        raise ValueError(
            "`tokenizer` must pad with one id on both sides. Received: pad_id="
            f"{source.pad_id} for the source, {target.pad_id} for the target"
        )
    return source.pad_id
