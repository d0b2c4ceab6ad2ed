"""Witten-Bell smoothing against the formula and published values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from witten_bell import WittenBell

pytestmark = pytest.mark.one_backend


def by_formula(ids, context, character, size):
    """Returns the probability of one character by definition."""
    shorter = (
        by_formula(ids, context[1:], character, size) if context else 1 / size
    )
    n = len(context)
    after = [
        ids[i + n]
        for i in range(len(ids) - n)
        if tuple(ids[i : i + n]) == tuple(context)
    ]
    if not after:
        return shorter
    followers = len(set(after))
    return (after.count(character) + followers * shorter) / (
        len(after) + followers
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.integers(1, 4),
)
def test_losses_match_the_formula(train, ids, order):
    losses = WittenBell(np.array(train), 4, order).losses(np.array(ids))
    assert losses.shape == (order, len(ids))
    for n in range(1, order + 1):
        for position, character in enumerate(ids):
            before = ids[max(0, position - n + 1) : position]
            p = by_formula(train, before, character, 4)
            assert losses[n - 1, position] == pytest.approx(-np.log(p))


def test_probabilities_sum_to_one():
    train = np.random.default_rng(0).integers(0, 5, 200)
    model = WittenBell(train, 5, 3)
    for context in ([0, 1], [4, 4], [2, 3]):
        rows = [model.losses([*context, c])[2, -1] for c in range(5)]
        assert np.exp(-np.array(rows)).sum() == pytest.approx(1)


def test_too_high_order_raises():
    with pytest.raises(ValueError, match=r"below 2\*\*63"):
        WittenBell(np.zeros(9, int), 1000, 7)
