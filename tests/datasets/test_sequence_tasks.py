"""Sequences to copy, reverse or sort."""

import functools
import hashlib

import keras
import numpy as np
import pytest

from keras_attn import datasets
from keras_attn.models import GPT, Transformer
from keras_attn.training import SequenceCrossentropy
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend

PAD, START, END, MASK, FIRST = range(5)
TASKS = {
    "copy": (datasets.make_copy_task, lambda x: x, "15d5eb44ce96930f"),
    "reversal": (
        datasets.make_reversal_task,
        lambda x: x[::-1],
        "d421e9e15cabbb23",
    ),
    "sorting": (datasets.make_sorting_task, sorted, "92e4bba990ae28df"),
    "masked": (
        functools.partial(datasets.make_sorting_task, max_mask_rate=0.9),
        lambda x: sorted(one for one in x if one != MASK),
        "8423653a745836aa",
    ),
}
OPTIONS = {"length": 6, "min_length": 2, "num_symbols": 20}


@pytest.mark.parametrize("name", TASKS)
def test_targets_are_those_of_python(name):
    make, solve, expected = TASKS[name]
    pairs = make(700, seed=3, **OPTIONS)
    assert digest(pairs) == expected
    lengths = set()
    for source, target, labels in zip(*pairs, strict=True):
        symbols = source.tolist()[: source.tolist().index(END)]
        assert set(symbols) <= {MASK, *range(FIRST, FIRST + 20)}
        rows = [
            [*symbols, END],
            [START, *solve(symbols)],
            [*solve(symbols), END],
        ]
        padded = [row + [PAD] * (7 - len(row)) for row in rows]
        assert np.stack([source, target, labels]).tolist() == padded
        lengths.add(len(symbols))
        if name in ("sorting", "masked"):
            seen = [one for one in symbols if one != MASK]
            assert len(seen) == len(set(seen))
    assert lengths == {2, 3, 4, 5, 6}
    masked = (pairs.source == MASK).sum() / (pairs.source > END).sum()
    assert 0.4 < masked < 0.5 if name == "masked" else masked == 0
    # More rows begin with the same rows.
    fewer = make(9, seed=3, **OPTIONS)
    for some, more in zip(fewer, pairs, strict=True):
        np.testing.assert_array_equal(some, more[:9])
    other = make(9, seed=4, **OPTIONS)
    assert (fewer.source != other.source).any()


def remainder(answer):
    content = hashlib.sha256(" ".join(map(str, answer)).encode())
    return int(content.hexdigest(), 16) % 20


@pytest.mark.parametrize("name", TASKS)
def test_no_answer_is_in_two_splits(name):
    make, _, _ = TASKS[name]
    found = {}
    for split in ("train", "validation", "test"):
        rows = [
            make(400, split=split, length=length, min_length=1, seed=length)
            for length in (2, 3)
        ]
        found[split] = {
            tuple(label[label > END].tolist())
            for pairs in rows
            for label in pairs.labels
        }
    remainders = {
        split: {remainder(answer) for answer in answers}
        for split, answers in found.items()
    }
    assert remainders == {
        "train": set(range(2, 20)),
        "validation": {1},
        "test": {0},
    }


@pytest.mark.parametrize("name", TASKS)
def test_empty_and_short_tasks(name):
    make, _, _ = TASKS[name]
    for array in make(0, length=5):
        assert array.shape == (0, 6) and array.dtype == "int32"
    pairs = make(1, length=1, num_symbols=1)
    assert pairs.source.shape == (1, 2)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda make: make(-1), "`n` must be at least 0"),
        (lambda make: make(2**40), "`n` must be at most"),
        (lambda make: make(1, seed=-1), "`seed` must be at least 0"),
        (lambda make: make(1, split="all"), "`split` must be one of"),
        (lambda make: make(1, length=0), "`length` must be at least 1"),
        (lambda make: make(1, length=3, min_length=4), "`min_length` must be"),
        (lambda make: make(1, num_symbols=0), "`num_symbols` must be at least"),
        (lambda make: make(1, num_symbols=2**40), "`num_symbols` must be at m"),
        (
            lambda make: [
                make(1, length=1, num_symbols=1, split=split)
                for split in ("train", "test")
            ],
            "`split` must be one that has sequences.*Received: split='test'",
        ),
    ],
)
@pytest.mark.parametrize("name", ["copy", "reversal", "sorting"])
def test_invalid_arguments_raise(name, call, said):
    with pytest.raises(ValueError, match=said):
        call(TASKS[name][0])


def test_invalid_sorting_arguments_raise():
    make = datasets.make_sorting_task
    with pytest.raises(ValueError, match="length=9, num_symbols=8"):
        make(1, length=9, num_symbols=8)
    with pytest.raises(ValueError, match="`max_mask_rate` must be a number in"):
        make(1, max_mask_rate=1.5)


def test_models_learn_from_the_arrays():
    pairs = datasets.make_reversal_task(16, length=4, min_length=2)
    padding = np.zeros_like(pairs.source)
    lookups = datasets.make_lookup_task(16)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8}
    for model, inputs, labels in (
        (
            Transformer(14, intermediate_dim=8, **sizes),
            (pairs.source, pairs.target),
            pairs.labels,
        ),
        (
            GPT(14, intermediate_dim=8, max_sequence_length=10, **sizes),
            np.concatenate([pairs.source, pairs.target], axis=1),
            np.concatenate([padding, pairs.labels], axis=1),
        ),
        (
            GPT(24, intermediate_dim=8, max_sequence_length=13, **sizes),
            lookups.tokens,
            lookups.labels,
        ),
    ):
        model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy())
        losses = [model.train_on_batch(inputs, labels) for _ in range(4)]
        assert losses[-1] < losses[0]
