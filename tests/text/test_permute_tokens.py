"""permute_tokens: number, positions and order of the targets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keras_attn.text import permute_tokens

pytestmark = pytest.mark.one_backend
SPECIAL = range(5)


def rows(count=300, length=40, seed=0):
    """Rows of words between ids 2 and 3, padded on the right."""
    random = np.random.default_rng(seed)
    ids = random.integers(5, 50, (count, length)).astype("int32")
    ids[:, 0] = 2
    for row, end in zip(ids, random.integers(2, length, count), strict=True):
        row[end] = 3
        row[end + 1 :] = 0
    return ids


@given(
    st.integers(1, 30),
    st.floats(0.05, 0.95),
    st.integers(1, 7),
    st.integers(0, 5),
)
@settings(deadline=None, max_examples=60)
def test_targets_and_their_order(length, rate, longest, seed):
    ids = rows(6, length + 2, seed)
    order, positions, labels = permute_tokens(ids, SPECIAL, rate, longest, seed)
    assert order.shape == ids.shape
    assert positions.shape == labels.shape
    for row in range(len(ids)):
        real = ~np.isin(ids[row], SPECIAL)
        count = (labels[row] >= 0).sum()
        expected = max(1, int(rate * real.sum() + 0.5)) if real.any() else 0
        assert count == min(expected, positions.shape[1])
        targets = positions[row, :count]
        assert real[targets].all() and (np.diff(targets) > 0).all()
        assert labels[row, :count].tolist() == ids[row, targets].tolist()
        assert (positions[row, count:] == -1).all()
        assert sorted(order[row, targets]) == list(range(1, count + 1))
        others = np.setdiff1d(np.arange(ids.shape[1]), targets)
        assert (order[row, others] == 0).all()


def test_target_orders_are_equally_likely():
    ids = np.tile(np.arange(5, 11, dtype="int32"), (6000, 1))
    order, positions, _ = permute_tokens(ids, prediction_rate=0.5, seed=1)
    drawn = [tuple(row) for row in np.take_along_axis(order, positions, 1)]
    counts = [drawn.count(way) for way in itertools.permutations(range(1, 4))]
    assert sum(counts) == 6000
    assert stats.chisquare(counts).pvalue > 1e-6


def test_every_position_is_sometimes_a_target():
    ids = np.tile(np.arange(5, 41, dtype="int32"), (4000, 1))
    order, _, _ = permute_tokens(ids, seed=2)
    rates = (order > 0).mean(axis=0)
    assert abs(rates.mean() - 1 / 6) < 1e-9
    assert rates.min() > 0.08 and rates.max() < 0.26


def test_spans():
    ids = np.tile(np.arange(5, 65, dtype="int32"), (500, 1))

    def runs(longest):
        order, _, _ = permute_tokens(ids, max_span_length=longest, seed=3)
        found = []
        for row in order > 0:
            groups = itertools.groupby(row)
            found += [len(list(g)) for chosen, g in groups if chosen]
        return np.array(found)

    # Neighboring spans may touch; single tokens rarely do.
    assert runs(1).mean() < 1.2
    assert runs(5).mean() > 2.0


def test_the_seed_determines_the_order():
    ids = rows()
    one, other, third = (
        permute_tokens(ids, SPECIAL, seed=s) for s in (4, 4, 5)
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one.order, third.order)


@pytest.mark.parametrize(
    ("ids", "kwargs", "message"),
    [
        ([1, 2], {}, "`token_ids` must be integers of shape"),
        ([[0.5]], {}, "`token_ids` must be integers of shape"),
        (
            [[1]],
            {"prediction_rate": 1.0},
            "`prediction_rate` must be a number in",
        ),
        (
            [[1]],
            {"prediction_rate": 0},
            "`prediction_rate` must be a number in",
        ),
        ([[1]], {"max_span_length": 0}, "`max_span_length` must be at least 1"),
    ],
)
def test_invalid_arguments_raise(ids, kwargs, message):
    with pytest.raises(ValueError, match=message):
        permute_tokens(ids, **kwargs)
