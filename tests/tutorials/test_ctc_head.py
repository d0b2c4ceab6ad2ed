"""The CTC head against enumeration of all paths: values and gradients."""

import itertools

import keras
import numpy as np
import pytest
from ctc_head import CTCHead, read_path

from tests.helpers.gradients import gradient

V, S, D = 4, 5, 3


@pytest.fixture
def head():
    layer = CTCHead(V)
    layer.build((None, None, D))
    kernel, bias = layer.weights
    generator = np.random.default_rng(0)
    kernel.assign(generator.normal(size=(D, V)))
    bias.assign(generator.normal(size=V))
    return layer


@pytest.fixture
def memory():
    return np.random.default_rng(1).normal(size=(3, S, D)).astype("float32")


def probability(head, memory, length, text):
    """Sums the probabilities of all paths that collapse to a text."""
    kernel, bias = (
        keras.ops.convert_to_numpy(w).astype("float64") for w in head.weights
    )
    p = np.exp(memory.astype("float64") @ kernel + bias)
    p /= p.sum(-1, keepdims=True)
    return sum(
        np.prod([p[s, symbol] for s, symbol in enumerate(path)])
        for path in itertools.product(range(V), repeat=length)
        if read_path(path) == text
    )


LENGTHS = np.array([5, 4, 2], "int32")
TEXTS = [1, 1, 2], [3], [2, 1]
IDS = np.array([[1, 1, 2], [3, 0, 0], [2, 1, 0]], "int32")


def expected_loss(head, memory):
    nats = [
        -np.log(probability(head, row, length, text))
        for row, length, text in zip(memory, LENGTHS, TEXTS, strict=True)
    ]
    return sum(nats) / sum(map(len, TEXTS))


def test_loss_matches_enumeration(head, memory):
    found = keras.ops.convert_to_numpy(head.loss(memory, LENGTHS, IDS))
    assert found.shape == ()
    assert found == pytest.approx(expected_loss(head, memory), abs=1e-5)


def test_gradient_matches_enumeration(head, memory):
    (found,) = gradient(lambda m: head.loss(m, LENGTHS, IDS), memory)
    step = 1e-3
    for position in ((0, 0, 0), (0, 4, 2), (1, 3, 1), (2, 1, 2)):
        ends = []
        for sign in (1, -1):
            moved = memory.astype("float64")
            moved[position] += sign * step
            ends.append(expected_loss(head, moved))
        slope = (ends[0] - ends[1]) / (2 * step)
        assert found[position] == pytest.approx(slope, abs=1e-4)
    assert not found[1, 4].any() and not found[2, 2:].any()


def test_too_long_text_has_probability_0(head, memory):
    found = keras.ops.convert_to_numpy(
        head.log_probability(
            memory,
            np.array([3, 2, 2], "int32"),
            np.array([[1, 1, 2], [2, 2, 0], [2, 1, 0]], "int32"),
        )
    )
    assert np.isinf(found).tolist() == [True, True, False]
    assert probability(head, memory[0], 3, [1, 1, 2]) == 0


def test_probabilities_of_all_texts_sum_to_1(head, memory):
    texts = [
        list(text)
        for size in range(4)
        for text in itertools.product(range(1, V), repeat=size)
    ]
    total = sum(probability(head, memory[0], 3, text) for text in texts)
    assert total == pytest.approx(1)


def test_decoding_finds_the_most_likely_path(head, memory):
    found = head.spell(memory, LENGTHS)
    logits = keras.ops.convert_to_numpy(head(memory))
    for row, length, ids in zip(logits, LENGTHS, found, strict=True):
        assert ids == read_path(row[:length].argmax(-1))


@pytest.mark.parametrize(
    "path, text",
    [
        ([], []),
        ([0, 0], []),
        ([1, 1, 1], [1]),
        ([1, 0, 1], [1, 1]),
        ([2, 2, 0, 2, 3, 3, 0], [2, 2, 3]),
    ],
)
def test_collapse_path(path, text):
    assert read_path(path) == text


def test_config_roundtrip(head):
    again = CTCHead.from_config(head.get_config())
    assert again.get_config() == head.get_config()
    assert head.compute_output_shape((2, S, D)) == (2, S, V)
