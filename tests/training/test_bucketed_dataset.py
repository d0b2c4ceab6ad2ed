"""BucketedDataset: shapes, coverage, order and `fit`."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.training import BucketedDataset


def encode(records, length, random):
    """Returns the records themselves, a shape, and a number drawn."""
    return records, length, float(random.random())


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
    num_buckets=st.integers(1, 7),
)
def test_every_record_is_in_an_epoch(lengths, batch_size, num_buckets):
    records = list(enumerate(lengths))
    batches = BucketedDataset(
        records, lengths, encode, batch_size, num_buckets, seed=3
    )
    seen, shapes = [], set()
    for rows, length, _ in batches:
        assert len(rows) == batch_size
        assert max(size for _, size in rows) <= length
        shapes.add(length)
        seen += rows
    assert set(seen) == set(records)
    assert len(shapes) <= num_buckets
    # Less than one batch of each bucket is repeated.
    assert len(seen) - len(records) < len(shapes) * batch_size
    # The first two batches differ where all can.
    if len(shapes) > 1:
        assert batches[0][1] != batches[1][1]


def test_order_depends_on_seed_and_epoch_alone():
    lengths = list(range(1, 33))

    def drawn(seed, epoch):
        batches = BucketedDataset(lengths, lengths, encode, 4, 4, seed=seed)
        batches.set_epoch(2)
        batches.set_epoch(epoch)
        return list(batches)

    assert drawn(0, 1) == drawn(0, 1)
    assert drawn(0, 1) != drawn(0, 0)
    assert drawn(0, 1) != drawn(1, 1)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
    num_buckets=st.integers(1, 7),
    epochs=st.integers(1, 5),
)
def test_first_epochs_leave_out_long_records(
    lengths, batch_size, num_buckets, epochs
):
    records = list(enumerate(lengths))
    settings = (records, lengths, encode, batch_size, num_buckets)
    batches = BucketedDataset(*settings, curriculum_epochs=epochs)
    plain = BucketedDataset(*settings)
    longest = []
    for epoch in range(epochs + 1):
        batches.set_epoch(epoch)
        plain.set_epoch(epoch)
        assert len(batches) == len(plain)
        seen = {row for rows, *_ in batches for row in rows}
        longest.append(max(size for _, size in seen))
        used = -(-len(records) * (4 * epochs + 6 * epoch) // (10 * epochs))
        assert longest[-1] == sorted(lengths)[used - 1]
        for rows, length, _ in batches:
            assert len(rows) == batch_size
            assert max(size for _, size in rows) <= length
        shapes = {length for _, length, _ in batches}
        if len(batches) > 1 and len(shapes) > 1:
            assert batches[0][1] != batches[1][1]
    assert seen == set(records) and list(batches) == list(plain)


def test_fit_draws_another_order_in_each_epoch():
    seen = []

    def record(rows, length, random):
        seen.append((*rows, float(random.random())))
        return np.zeros((2, 1)), np.zeros((2, 1))

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for shuffle in (True, False):
        batches = BucketedDataset(
            range(8), [1] * 8, record, 2, 1, shuffle=shuffle
        )
        seen.clear()
        model.fit(batches, epochs=2, shuffle=False, verbose=0)
        first, second = seen[-8:-4], seen[-4:]
        assert (first == second) is not shuffle


def test_it_trains_a_model_with_few_shapes():
    random = np.random.default_rng(0)
    rows = [random.normal(size=(n, 2)).astype("float32") for n in (3, 5, 8, 9)]

    def pad(rows, length, _):
        x = np.zeros((len(rows), length, 2), "float32")
        for i, row in enumerate(rows):
            x[i, : len(row)] = row
        return x, x[:, 0, :1]

    batches = BucketedDataset(rows * 4, [3, 5, 8, 9] * 4, pad, 4, 2)
    inputs = keras.Input((None, 2))
    outputs = keras.layers.Dense(1)(keras.layers.GlobalMaxPooling1D()(inputs))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    history = model.fit(batches, epochs=2, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([], [], encode), "at least one record"),
        (([1], [1, 2], encode), "1 records, 2 lengths"),
        (([1], [0], encode), r"`lengths\[0\]` must be at least 1"),
        (([1], [1], 3), "`encode` must be a callable"),
        (([1], [1], encode, 0), "`batch_size` must be a positive integer"),
        (([1], [1], encode, 1, 0), "`num_buckets` must be a positive"),
        (([1], [1], encode, 1, 1, 3), "`shuffle` must be"),
        (([1], [1], encode, 1, 1, True, -1), "`seed` must be at least 0"),
        (([1], [1], encode, 1, 1, True, 0, -1), "`curriculum_epochs` must be"),
        (([1], [1], encode, 1, 1, False, 0, 2), "`curriculum_epochs` must"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BucketedDataset(*arguments)
