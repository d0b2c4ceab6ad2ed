"""best_buckets: compared with an exhaustive search."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.text.length_buckets import best_buckets

pytestmark = pytest.mark.one_backend

LENGTHS = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=40
)


def rows_of(length, tokens_per_batch, multiple):
    """The largest multiple that fits, or the smallest one."""
    fitting = range(multiple, tokens_per_batch // length + 1, multiple)
    return max(fitting, default=multiple)


def cost(pairs, groups, *rows):
    """Ids per epoch, padding included, for groups of maximum lengths."""
    total = 0
    for group in groups:
        members = [p for p in pairs if max(p) in group]
        source = max(s for s, _ in members)
        target = max(t for _, t in members)
        per_batch = rows_of(max(group), *rows)
        batches = -(-len(members) // per_batch)
        total += batches * per_batch * (source + target)
    return total


def cheapest(pairs, buckets, *rows):
    """The lowest cost over all splits of the lengths into ranges."""
    lengths = sorted({max(pair) for pair in pairs})
    found = []
    for count in range(1, min(buckets, len(lengths)) + 1):
        for cuts in itertools.combinations(range(1, len(lengths)), count - 1):
            edges = [0, *cuts, len(lengths)]
            groups = [lengths[a:b] for a, b in itertools.pairwise(edges)]
            found.append(cost(pairs, groups, *rows))
    return min(found)


@given(
    pairs=LENGTHS,
    tokens_per_batch=st.sampled_from([1, 5, 24, 60]),
    buckets=st.integers(1, 4),
    multiple=st.sampled_from([1, 2, 3, 8]),
)
def test_no_other_split_has_less_padding(
    pairs, tokens_per_batch, buckets, multiple
):
    source, target = np.array(pairs).T
    found = best_buckets(source, target, tokens_per_batch, buckets, multiple)
    assert 1 <= len(found) <= buckets
    ids = sum(
        b.batches * b.rows * (b.source_length + b.target_length) for b in found
    )
    assert ids == cheapest(pairs, buckets, tokens_per_batch, multiple)
    # Each pair is in one bucket, in the order of the data, and fits.
    together = np.concatenate([b.pairs for b in found])
    assert sorted(together) == list(range(len(pairs)))
    for bucket in found:
        assert (np.diff(bucket.pairs) > 0).all()
        assert source[bucket.pairs].max() == bucket.source_length
        assert target[bucket.pairs].max() == bucket.target_length
        longest = max(bucket.source_length, bucket.target_length)
        assert bucket.rows == rows_of(longest, tokens_per_batch, multiple)
    longest = [max(b.source_length, b.target_length) for b in found]
    assert longest == sorted(longest)


def test_two_lengths_two_shapes():
    source = np.array([3, 9, 3, 9, 3, 3])
    target = np.array([2, 9, 3, 8, 1, 1])
    short, long = best_buckets(source, target, 18, 3)
    assert short.pairs.tolist() == [0, 2, 4, 5] and short[1:] == (6, 3, 3)
    assert long.pairs.tolist() == [1, 3] and long[1:] == (2, 9, 9)
    assert (short.batches, long.batches) == (1, 1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_equal_lengths_use_a_single_shape(count):
    # One length: a second shape would only cost a compilation.
    (only,) = best_buckets(np.full(7, 5), np.full(7, 4), 10, count)
    assert only[1:] == (2, 5, 4) and only.batches == 4
