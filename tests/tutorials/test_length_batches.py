"""Length-bucketed batches: complete epochs, few shapes, reproducible order."""

import doctest

import length_batches
import numpy as np
import pytest
from length_batches import LengthBatches, few_lengths

pytestmark = pytest.mark.one_backend


def batches_of(sizes, batch_size=8, buckets=3):
    return LengthBatches(
        list(range(len(sizes))),
        sizes,
        batch_size,
        lambda rows, length, draw: (rows, length, draw.random()),
        buckets,
    )


def test_docstring_examples():
    found = doctest.testmod(length_batches)
    assert found.attempted and not found.failed


def test_each_epoch_has_every_item_in_a_new_order():
    sizes = [4 + i % 9 for i in range(50)]
    batches = batches_of(sizes)
    orders = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        order = [batches[i] for i in range(len(batches))]
        assert {i for rows, *_ in order for i in rows} == set(range(50))
        for rows, length, _ in order:
            assert len(rows) == 8 and length in batches.lengths
            assert max(sizes[i] for i in rows) <= length
        # Random draws differ between batches.
        assert len({number for *_, number in order}) == len(order)
        orders.append(order)
    assert orders[0] != orders[1]
    batches.set_epoch(0)
    batches.on_epoch_end()
    assert [batches[i] for i in range(len(batches))] == orders[1]


def test_first_two_batches_have_different_lengths():
    batches = batches_of([3, 4, 9, 10, 30, 31] * 9)
    for epoch in range(20):
        batches.set_epoch(epoch)
        assert batches[0][1] != batches[1][1]


def test_few_items():
    (batch,) = (lambda b: [b[i] for i in range(len(b))])(batches_of([5, 5]))
    assert sorted(set(batch[0])) == [0, 1] and batch[1] == 5


@pytest.mark.parametrize("count", range(1, 6))
def test_lengths_cover_all_sizes(count):
    sizes = np.random.default_rng(count).integers(1, 60, 400).tolist()
    lengths = few_lengths(sizes, count)
    assert len(lengths) <= count and lengths[-1] == max(sizes)
    assert lengths == sorted(set(lengths))
    shares = np.histogram(sizes, [0, *(x + 1 for x in lengths)])[0] / 400
    assert len(lengths) == count and np.all(abs(shares - 1 / count) < 0.08)


def test_equal_sizes_have_one_length():
    assert few_lengths([5, 5, 5], 3) == [5]


@pytest.mark.parametrize("items, sizes", [([], []), ([1, 2], [3])])
def test_invalid_items_raise(items, sizes):
    with pytest.raises(ValueError, match="`items` must not be empty, and each"):
        LengthBatches(items, sizes, 8, None)
