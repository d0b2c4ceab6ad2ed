"""token_blocks: blocks of the stream, and labels shifted by one token."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_attn.models import GPT
from keras_attn.text import token_blocks
from keras_attn.training import SequenceCrossentropy

STREAM = np.arange(100, 1101)


def batches(dataset):
    return list(dataset)


def test_every_epoch_has_different_block_boundaries():
    dataset = token_blocks(STREAM, 16, 4, seed=3)
    firsts = set()
    assert len(dataset) == 15
    for _ in range(6):
        found = batches(dataset)
        assert len(found) == 15
        rows = np.concatenate([inputs for inputs, _ in found])
        labels = np.concatenate([labels for _, labels in found])
        np.testing.assert_array_equal(labels, rows + 1)
        np.testing.assert_array_equal(np.diff(rows, axis=1), 1)
        # No token is read twice in an epoch.
        assert len(np.unique(rows)) == rows.size
        offsets = {int(row[0] - 100) % 16 for row in rows}
        assert len(offsets) == 1
        firsts |= offsets
        assert (np.diff(rows[:, 0]) < 0).any()
    assert len(firsts) > 2


def test_epochs_are_reproducible():
    one = token_blocks(STREAM, 16, 4, seed=3)
    epochs = [batches(one) for _ in range(3)]
    other = token_blocks(STREAM, 16, 4, seed=3, initial_epoch=2)
    for a, b in zip(epochs[2], batches(other), strict=True):
        np.testing.assert_array_equal(a, b)
    one.set_epoch(1)
    for a, b in zip(epochs[1], batches(one), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(epochs[0][0], epochs[1][0])


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(2, 60), length=st.integers(1, 9), rows=st.integers(1, 4)
)
def test_in_order_each_token_is_a_label_once(size, length, rows):
    stream = np.arange(5, 5 + size)
    dataset = token_blocks(stream, length, rows, shuffle=False, pad_id=2)
    found = batches(dataset)
    assert len(found) == len(dataset)
    inputs = np.concatenate([inputs.ravel() for inputs, _ in found])
    labels = np.concatenate([labels.ravel() for _, labels in found])
    labeled = labels >= 0
    np.testing.assert_array_equal(labels[labeled], stream[1:])
    np.testing.assert_array_equal(inputs[labeled], stream[:-1])
    assert (inputs[~labeled] == 2).all() and (labels[~labeled] == -1).all()
    assert (~labeled).sum() < length * rows
    assert inputs.dtype == labels.dtype == np.int32


@settings(max_examples=25, deadline=None)
@given(
    extra=st.integers(0, 40), length=st.integers(1, 9), rows=st.integers(1, 4)
)
def test_shuffled_blocks_lie_in_the_stream(extra, length, rows):
    stream = np.arange(length * rows + 1 + extra)
    dataset = token_blocks(stream, length, rows, seed=extra)
    found = batches(dataset)
    assert len(found) == len(dataset) >= 1
    for inputs, labels in found:
        assert inputs.shape == labels.shape == (rows, length)
        np.testing.assert_array_equal(labels, inputs + 1)


def test_a_language_model_is_fitted():
    stream = 3 + np.arange(200) % 5
    model = GPT(8, 1, 2, 8, max_sequence_length=8, pad_id=None, dropout=0.0)
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossentropy(pad_id=-1))
    history = model.fit(
        token_blocks(stream, 8, 4),
        epochs=6,
        shuffle=False,
        validation_data=token_blocks(stream, 8, 4, shuffle=False),
        verbose=0,
    ).history
    assert history["loss"][-1] < history["loss"][0] / 2
    assert history["val_loss"][-1] < 1


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"token_ids": [[1, 2]]}, r"`token_ids` must be integers of shape \(l"),
        ({"token_ids": [0.5, 1]}, "`token_ids` must be integers"),
        ({"token_ids": [1] * 8}, "must have at least 9 tokens.*Received: 8"),
        ({"token_ids": [1], "shuffle": False}, "must have at least 2 tokens"),
        ({"length": 0}, "`length` must be a positive integer"),
        ({"batch_size": 0}, "`batch_size` must be a positive integer"),
        ({"seed": -1}, "`seed` must be an integer, at least 0"),
        ({"initial_epoch": 0.5}, "`initial_epoch` must be an integer"),
    ],
)
def test_invalid_arguments_raise(kwargs, message):
    kwargs = {"token_ids": np.arange(9), "length": 4, "batch_size": 2} | kwargs
    with pytest.raises(ValueError, match=message):
        token_blocks(**kwargs)
