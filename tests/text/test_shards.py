"""`shard`: several processes together read what one process reads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import tree

from keras_attn.text import token_batches, token_blocks, token_streams

pytestmark = pytest.mark.one_backend


class Digits:
    """A tokenizer of digits."""

    pad_id, start_id, end_id, vocabulary_size = 0, 1, 2, 13

    def encode(self, texts):
        return [[int(digit) + 3 for digit in text] for text in texts]


def pairs(count, seed):
    """Different pairs of texts, of lengths 4 to 9."""
    random = np.random.default_rng(seed)
    tails = ["7" * n for n in random.integers(0, 6, count)]
    source = [f"{i:04d}{tail}" for i, tail in enumerate(tails)]
    return source, [text[::-1] for text in source]


def epoch(dataset):
    """The batches of an epoch, each a flat list of arrays."""
    return [tree.flatten(batch) for batch in dataset]


def joined(parts):
    """Concatenates the batches of all shards, in order."""
    for batches in zip(*parts, strict=True):
        yield [np.concatenate(arrays) for arrays in zip(*batches, strict=True)]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype == np.int32
            np.testing.assert_array_equal(x, y)


@given(
    count=st.integers(1, 4),
    multiple=st.integers(1, 3),
    number=st.integers(1, 60),
    buckets=st.integers(1, 3),
    shuffle=st.booleans(),
    seed=st.integers(0, 99),
)
def test_shards_of_pairs(count, multiple, number, buckets, shuffle, seed):
    source, target = pairs(number, seed)

    def make(shard, multiple, initial_epoch=0):
        return token_batches(
            source,
            target,
            Digits(),
            tokens_per_batch=48,
            buckets=buckets,
            rows_multiple_of=multiple,
            shuffle=shuffle,
            seed=seed,
            initial_epoch=initial_epoch,
            shard=shard,
        )

    shards = [(index, count) for index in range(count)]
    datasets = [make(shard, multiple) for shard in shards]
    whole = make((0, 1), multiple * count)
    assert {dataset.report for dataset in datasets} == {whole.report}
    for number_of_epoch in range(2):
        parts = [epoch(dataset) for dataset in datasets]
        # Of equal length, and in equal shapes at each step.
        assert {len(part) for part in parts} == {len(whole)}
        for batches in zip(*parts, strict=True):
            shapes = {tuple(x.shape for x in batch) for batch in batches}
            assert len(shapes) == 1 and not batches[0][0].shape[0] % multiple
        # No row is read twice or lost.
        texts = [
            "".join(str(i - 3) for i in row if i > 2)
            for part in parts
            for batch in part
            for row in batch[0]
            if row.any()
        ]
        assert sorted(texts) == sorted(source)
        assert_equal(joined(parts), epoch(whole))
        # A new process resumes in this epoch.
        again = make(shards[-1], multiple, initial_epoch=number_of_epoch)
        assert_equal(epoch(again), parts[-1])


def sizes(function):
    """Runs a test with several numbers of shards, rows and tokens."""
    return given(
        count=st.integers(1, 4),
        rows=st.integers(1, 3),
        length=st.integers(1, 5),
        extra=st.integers(0, 50),
        shuffle=st.booleans(),
    )(function)


def assert_shards_are_the_whole(make, count):
    datasets = [make((index, count)) for index in range(count)]
    whole = make((0, 1))
    for _ in range(2):
        assert {len(dataset) for dataset in datasets} == {len(whole)}
        assert_equal(joined([epoch(d) for d in datasets]), epoch(whole))
    datasets[-1].set_epoch(1)
    whole.set_epoch(1)
    size = len(tree.flatten(whole[0])[0]) // count
    last = [[x[-size:] for x in batch] for batch in epoch(whole)]
    assert_equal(epoch(datasets[-1]), last)


@sizes
def test_shards_of_blocks(count, rows, length, extra, shuffle):
    ids = np.arange(count * rows * length * shuffle + 2 + extra)

    def make(shard):
        return token_blocks(
            ids, length, count * rows, shuffle=shuffle, seed=extra, shard=shard
        )

    assert_shards_are_the_whole(make, count)


@sizes
def test_shards_of_streams(count, rows, length, extra, shuffle):
    ids = np.arange(count * rows * length + 1 + extra)
    documents = np.split(ids, [len(ids) // 3])

    def make(shard):
        return token_streams(
            documents,
            length,
            count * rows,
            shuffle=shuffle,
            seed=extra,
            shard=shard,
        )

    assert_shards_are_the_whole(make, count)


@pytest.mark.parametrize("shard", [(2, 2), (-1, 2), (0, 0), (0,), 3, (0.0, 2)])
def test_an_impossible_shard_is_refused(shard):
    with pytest.raises(ValueError, match=r"`shard` must be a tuple \(index, c"):
        token_blocks(np.arange(9), 2, 2, shard=shard)


def test_a_count_that_does_not_divide_the_rows_is_refused():
    for make, data in ((token_blocks, np.arange(99)), (token_streams, [[1]])):
        with pytest.raises(ValueError, match="`batch_size` must be a multiple"):
            make(data, 2, 3, shard=(0, 2))
    with pytest.raises(ValueError, match="`rows_multiple_of` must be at most"):
        token_batches(
            ["1"], ["1"], Digits(), rows_multiple_of=2**15, shard=(0, 4)
        )
