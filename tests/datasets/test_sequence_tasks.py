"""Sequences to copy, reverse or sort, to recall from, and to compare."""

import functools

import keras
import numpy as np
import pytest

from keras_attn import datasets
from keras_attn.models import GPT, Transformer
from keras_attn.training import SequenceCrossentropy

PAD, START, END, MASK, FIRST = range(5)
SOLUTIONS = {
    "copy": list,
    "reversal": lambda symbols: symbols[::-1],
    "sorting": lambda symbols: sorted(one for one in symbols if one != MASK),
}
TASKS = [("copy", {}), ("reversal", {}), ("sorting", {})]
TASKS.append(("sorting", {"max_mask_rate": 0.9}))


@pytest.mark.parametrize("task, options", TASKS)
def test_targets_are_those_of_python(task, options):
    make = functools.partial(getattr(datasets, f"make_{task}_task"), **options)
    pairs = make(500, seed=3, length=6, min_length=2, num_symbols=20)
    lengths = set()
    for source, target, labels in zip(*pairs, strict=True):
        symbols = source.tolist()[: source.tolist().index(END)]
        assert set(symbols) <= {MASK, *range(FIRST, FIRST + 20)}
        answer = SOLUTIONS[task](symbols)
        expected = [*symbols, END], [START, *answer], [*answer, END]
        padded = [row + [PAD] * (7 - len(row)) for row in expected]
        assert np.stack([source, target, labels]).tolist() == padded
        lengths.add(len(symbols))
        if task == "sorting":
            seen = [one for one in symbols if one != MASK]
            assert len(seen) == len(set(seen))
    assert lengths == {2, 3, 4, 5, 6}
    masked = (pairs.source == MASK).sum() / (pairs.source > END).sum()
    assert 0.4 < masked < 0.5 if options else masked == 0
    for array in make(0, length=5):
        assert array.shape == (0, 6) and array.dtype == "int32"
    assert make(1, length=1, num_symbols=1).source.shape == (1, 2)


def check_frequencies(drawn, kinds):
    """All kinds are about equally frequent, within 5 standard deviations."""
    counts = np.bincount(drawn, minlength=kinds)
    error = np.sqrt(len(drawn) / kinds * (1 - 1 / kinds))
    assert len(counts) == kinds
    assert (np.abs(counts - len(drawn) / kinds) < 5 * error).all()


def check_recalled(data):
    assert {array.dtype.name for array in data} == {"int32"}
    recalled = data.tokens[np.arange(1000), data.positions]
    np.testing.assert_array_equal(recalled, data.answers)
    np.testing.assert_array_equal(data.labels[:, -1], data.answers)
    assert not data.labels[:, :-1].any()


def test_lookups_have_one_answer():
    data = datasets.make_lookup_task(1000, num_pairs=5, seed=4)
    assert data.tokens.shape == (1000, 11)
    keys, values = data.tokens[:, :-1:2], data.tokens[:, 1::2]
    for row, query in enumerate(data.tokens[:, -1]):
        table = dict(zip(keys[row], values[row], strict=True))
        assert len(table) == 5 and table[query] == data.answers[row]
        assert data.tokens[row, data.positions[row] - 1] == query
    check_frequencies(data.positions // 2, 5)
    check_frequencies(data.tokens[:, -1] - 4, 12)
    check_frequencies(data.answers - 16, 8)
    check_recalled(data)


def test_each_sequence_has_one_symbol_to_recall():
    data = datasets.make_recall_task(1000, length=12, seed=2)
    is_symbol = data.tokens < 12
    assert (is_symbol.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(is_symbol.argmax(axis=1), data.positions)
    assert (data.tokens[:, -1] == 38).all()
    check_frequencies(data.positions, 11)
    check_frequencies(data.answers - 4, 8)
    distractors = data.tokens[:, :-1][~is_symbol[:, :-1]]
    check_frequencies(distractors - 12, 26)
    check_recalled(data)


def test_comparisons():
    data = datasets.make_comparison_task(3000, seed=5)
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
    # Each label is frequent, and each digit decides some pairs.
    assert np.bincount(data.labels).min() > 200
    same_size = (data.numbers >= 100).all(axis=1)
    counts = np.bincount(data.positions[same_size, 0] + 1, minlength=5)
    assert counts[2:].min() > 35
    sizes = np.char.str_len(data.numbers.astype(str))
    assert 0.55 < (sizes[:, 0] == sizes[:, 1]).mean() < 0.75
    long = datasets.make_comparison_task(500, num_digits=9)
    assert long.tokens.shape == (500, 21)
    assert 10**8 < long.numbers.max() < 10**9


def test_models_learn_from_the_arrays():
    source, target, labels = datasets.make_reversal_task(16, length=4)
    tokens, next_tokens, *_ = datasets.make_lookup_task(16)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8}
    sizes["intermediate_dim"] = 8
    gpt = GPT(24, max_sequence_length=13, **sizes)
    for model, inputs, outputs in (
        (Transformer(14, **sizes), (source, target), labels),
        (gpt, tokens, next_tokens),
    ):
        model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy())
        losses = [model.train_on_batch(inputs, outputs) for _ in range(4)]
        assert losses[-1] < losses[0]
