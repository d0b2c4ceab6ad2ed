"""Sequences that end with a query."""

import numpy as np
import pytest

from keras_attn import datasets
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

TASKS = {
    "lookup": (datasets.make_lookup_task, {"num_pairs": 5}, "0ee602b795e8c98b"),
    "recall": (datasets.make_recall_task, {"length": 12}, "0d97bad9dbae9ef7"),
}


def check_frequencies(drawn, kinds):
    """All kinds are about equally frequent, within 5 standard deviations."""
    counts = np.bincount(drawn, minlength=kinds)
    error = np.sqrt(len(drawn) / kinds * (1 - 1 / kinds))
    assert len(counts) == kinds
    assert (np.abs(counts - len(drawn) / kinds) < 5 * error).all()


def test_lookups_have_one_answer():
    data = datasets.make_lookup_task(2000, num_pairs=5, seed=4)
    assert data.tokens.shape == (2000, 11)
    keys, values = data.tokens[:, :-1:2], data.tokens[:, 1::2]
    for row, query in enumerate(data.tokens[:, -1]):
        table = dict(zip(keys[row], values[row], strict=True))
        assert len(table) == 5 and table[query] == data.answers[row]
        assert data.tokens[row, data.positions[row]] == data.answers[row]
        assert data.tokens[row, data.positions[row] - 1] == query
    check_frequencies(data.positions // 2, 5)
    check_frequencies(data.tokens[:, -1] - 4, 12)
    check_frequencies(data.answers - 16, 8)


def test_each_sequence_has_one_symbol_to_recall():
    data = datasets.make_recall_task(2000, length=12, seed=2)
    is_symbol = data.tokens < 12
    assert (is_symbol.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(is_symbol.argmax(axis=1), data.positions)
    np.testing.assert_array_equal(data.tokens[is_symbol], data.answers)
    assert (data.tokens[:, -1] == 38).all() and (data.tokens >= 4).all()
    assert (data.tokens[:, :-1] < 38).all()
    check_frequencies(data.positions, 11)
    check_frequencies(data.answers - 4, 8)
    distractors = data.tokens[:, :-1][~is_symbol[:, :-1]]
    check_frequencies(distractors - 12, 26)


@pytest.mark.parametrize("name", TASKS)
def test_arrays(name):
    make, sizes, expected = TASKS[name]
    data = make(300, seed=1, **sizes)
    assert digest(data) == expected
    assert {array.dtype.name for array in data} == {"int32"}
    assert not data.labels[:, :-1].any()
    np.testing.assert_array_equal(data.labels[:, -1], data.answers)
    fewer, other = (make(9, seed=seed, **sizes) for seed in (1, 2))
    for some, more, different in zip(fewer, data, other, strict=True):
        np.testing.assert_array_equal(some, more[:9])
        assert (some != different).any()
    assert make(0, **sizes).labels.shape == (0, data.tokens.shape[1])


@pytest.mark.parametrize(
    "make",
    [
        lambda seed, split: datasets.make_lookup_task(
            900, num_pairs=2, num_keys=4, num_values=3, seed=seed, split=split
        ),
        lambda seed, split: datasets.make_recall_task(
            900, length=3, num_symbols=5, seed=seed, split=split
        ),
    ],
)
def test_splits_are_disjoint(make):
    found = [
        set(map(tuple, make(seed, split).tokens.tolist()))
        for seed, split in enumerate(("train", "validation", "test"))
    ]
    assert all(found) and sum(map(len, found)) == len(set().union(*found))


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"num_pairs": 13}, "`num_pairs` must be at most 12"),
        ({"num_pairs": 0}, "`num_pairs` must be at least 1"),
        ({"num_keys": 0}, "`num_keys` must be at least 1"),
        ({"num_values": 0}, "`num_values` must be at least 1"),
        ({"length": 1}, "`length` must be at least 2"),
        ({"num_symbols": 0}, "`num_symbols` must be at least 1"),
        ({"num_distractors": 2.0}, "`num_distractors` must be an integer"),
    ],
)
def test_invalid_arguments_raise(arguments, said):
    (name,) = arguments
    is_lookup = name in ("num_pairs", "num_keys", "num_values")
    make, _, _ = TASKS["lookup" if is_lookup else "recall"]
    with pytest.raises(ValueError, match=said):
        make(1, **arguments)
