"""token_streams: every token once, continued rows, document starts."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from keras_attn.text import token_streams


def read(stream):
    """Rows of ids, starts and labels, the segments of a row concatenated."""
    batches = [(x["token_ids"], x["document_starts"], y) for x, y in stream]
    return [np.concatenate(part, axis=1) for part in zip(*batches, strict=True)]


def documents_of(lengths):
    """Documents in which all tokens are distinct."""
    numbers = iter(range(1, 10_000))
    return [[next(numbers) for _ in range(length)] for length in lengths]


lengths = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(sum)


@hypothesis.given(lengths, st.integers(1, 4), st.integers(1, 3))
@hypothesis.settings(deadline=None, max_examples=15)
def test_in_order_every_token_occurs_once(sizes, length, rows):
    documents = documents_of(sizes)
    stream = token_streams(documents, length, rows, shuffle=False)
    ids, starts, labels = read(stream)
    total = sum(sizes)
    assert ids.shape == (rows, length * len(stream))
    flat = ids.ravel()
    assert flat[:total].tolist() == [t for d in documents for t in d]
    assert (flat[total:] == 0).all() and (labels.ravel()[total:] == -1).all()
    successor = {a: b for d in documents for a, b in itertools.pairwise(d)}
    firsts = {d[0] for d in documents if d}
    for index, token in enumerate(flat[:total]):
        assert labels.ravel()[index] == successor.get(token, -1)
        row_begins = index % ids.shape[1] == 0
        assert starts.ravel()[index] == (token in firsts or row_begins)


@hypothesis.given(lengths, st.integers(1, 3), st.integers(1, 3))
@hypothesis.settings(deadline=None, max_examples=15)
def test_shuffled_rows_continue_the_previous_batch(sizes, length, rows):
    documents = documents_of(sizes)
    hypothesis.assume(sum(sizes) >= length * rows)
    stream = token_streams(documents, length, rows, seed=3)
    successor = {a: b for d in documents for a, b in itertools.pairwise(d)}
    firsts = {d[0] for d in documents if d}
    epochs = [read(stream) for _ in range(2)]
    for ids, starts, labels in epochs:
        flat = ids.ravel().tolist()
        assert len(set(flat)) == len(flat) and 0 not in flat
        for row in range(rows):
            assert starts[row, 0] == 1
            for index in range(ids.shape[1]):
                token = ids[row, index]
                assert labels[row, index] == successor.get(token, -1)
                if index:
                    new = token in firsts
                    assert starts[row, index] == new
                    if not new:
                        assert successor[ids[row, index - 1]] == token
    stream.set_epoch(0)
    for one, other in zip(read(stream), epochs[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_epochs_differ_and_are_reproducible():
    documents = documents_of([20, 30, 10])
    first, second = (
        token_streams(documents, 4, 2, seed=5, initial_epoch=epoch)
        for epoch in (0, 1)
    )
    one = read(first)
    assert not np.array_equal(one[0], read(second)[0])
    np.testing.assert_array_equal(
        read(token_streams(documents, 4, 2, seed=5))[0], one[0]
    )
    alone = token_streams(np.arange(1, 50), 4, 2, seed=5)
    assert not np.array_equal(read(alone)[0], read(alone)[0])


@pytest.mark.parametrize(
    ("documents", "kwargs", "message"),
    [
        ([[1.5]], {}, "`documents` must be integers.*as number 0"),
        ([[[1]]], {}, "`documents` must be integers"),
        ([[1, 2]], {"length": 3}, "must have at least 6 tokens.*Received: 2"),
        ([], {"shuffle": False}, "must have at least 1 tokens.*Received: 0"),
        ([[1]], {"length": 0}, "`length`"),
        ([[1]], {"batch_size": 0}, "`batch_size`"),
        ([[1]], {"seed": -1}, "`seed`"),
    ],
)
def test_invalid_arguments_raise(documents, kwargs, message):
    settings = {"length": 2, "batch_size": 2} | kwargs
    with pytest.raises(ValueError, match=message):
        token_streams(documents, **settings)
