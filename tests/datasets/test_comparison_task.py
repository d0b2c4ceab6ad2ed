"""Pairs of numbers to compare."""

import numpy as np
import pytest

from keras_attn.datasets import make_comparison_task
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend


def test_labels_and_positions():
    data = make_comparison_task(4000, seed=5)
    assert digest(data) == "453b7fdbb9cbf640"
    signs = {1: "", 2: ":", 0: "", **{4 + n: str(n) for n in range(10)}}
    for tokens, label, numbers, positions in zip(*data, strict=True):
        text = "".join(signs[token] for token in tokens.tolist())
        assert text == "{}:{}:".format(*numbers)
        first, second = numbers.tolist()
        assert label == (0 if first < second else 1 if first == second else 2)
        if positions[0] >= 0:
            start = tokens[: positions[0]]
            offset = positions[1] - len(start)
            assert (tokens[offset + 1 : positions[1]] == start[1:]).all()
            decide = tokens[positions]
            assert label == 1 + np.sign(decide[0] - decide[1])
        else:
            assert first == second or len(str(first)) != len(str(second))


def test_each_digit_decides_some_pairs():
    data = make_comparison_task(4000, seed=5)
    assert np.bincount(data.labels).min() > 300
    same_size = (data.numbers >= 100).all(axis=1)
    counts = np.bincount(data.positions[same_size, 0] + 1, minlength=5)
    assert counts[2:].min() > 50
    sizes = np.char.str_len(data.numbers.astype(str))
    assert 0.55 < (sizes[:, 0] == sizes[:, 1]).mean() < 0.75


def test_no_pair_is_in_two_splits():
    found = [
        set(map(frozenset, make_comparison_task(3000, seed=i, split=split)[2]))
        for i, split in enumerate(("train", "validation", "test"))
    ]
    assert all(found) and sum(map(len, found)) == len(set().union(*found))


def test_long_numbers():
    data = make_comparison_task(2000, num_digits=9)
    assert data.tokens.shape == (2000, 21)
    assert 10**8 < data.numbers.max() < 10**9
    with pytest.raises(ValueError, match="`num_digits` must be at most 9"):
        make_comparison_task(1, num_digits=10)
