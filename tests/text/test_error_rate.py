"""Edit distance and error rates."""

import functools
import itertools

import numpy as np
import pytest

from keras_attn.text import edit_distance, error_rate

pytestmark = pytest.mark.one_backend


@functools.cache
def by_recursion(first, second):
    if not first or not second:
        return len(first) + len(second)
    return min(
        by_recursion(first[1:], second) + 1,
        by_recursion(first, second[1:]) + 1,
        by_recursion(first[1:], second[1:]) + (first[0] != second[0]),
    )


def test_distance_matches_a_recursion():
    texts = [
        "".join(letters)
        for length in range(5)
        for letters in itertools.product("ab", repeat=length)
    ]
    random = np.random.default_rng(0)
    texts += ["".join(random.choice(list("abcd"), 9)) for _ in range(30)]
    for first, second in itertools.product(texts, repeat=2):
        expected = by_recursion(first, second)
        assert edit_distance(first, second) == expected, (first, second)


@pytest.mark.parametrize(
    "first, second, expected",
    [
        ("kitten", "sitting", 3),
        ("freind", "friend", 2),
        ("naïve", "naive", 1),
        (["the", "cat"], ("the", "big", "cat"), 1),
        ([1, 2, 3], np.array([2, 3, 4]), 2),
        ((one for one in [(1, 2), None]), [(1, 2)], 1),
        ("ab", ["a", "b"], 0),
        ([], "abc", 3),
    ],
)
def test_sequences(first, second, expected):
    assert edit_distance(first, second) == expected


# As of jiwer 4.0.0.
@pytest.mark.parametrize(
    "predictions, references, characters, words",
    [
        (["HELO", "MOM"], ["HELLO", "MOM"], 1 / 8, 1 / 2),
        (["the cat"], ["the  cat sat "], 5 / 12, 1 / 3),
        (["a b c d", ""], ["x", "y z"], 10 / 4, 6 / 3),
        (["so", "so"], ["", "so"], 2 / 2, 1 / 1),
        (["The end"], ["the end"], 1 / 7, 1 / 2),
    ],
)
def test_error_rates(predictions, references, characters, words):
    assert error_rate(predictions, references) == characters
    assert error_rate(iter(predictions), references, "word") == words


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((["a"], ["a", "b"]), "`predictions` must have one.*: 1 and 2 texts"),
        (([], []), "`references` must have at least one character"),
        (([" a"], ["  "], "word"), "`references` must have at least one word"),
        (("ab", ["ab"]), "`predictions` must be an iterable of texts"),
        ((["ab"], [["ab"]]), "`references` must be an iterable of texts"),
        ((["a"], ["a"], "phoneme"), "`unit` must be one of"),
    ],
)
def test_invalid_texts_raise(arguments, said):
    with pytest.raises(ValueError, match=said):
        error_rate(*arguments)


@pytest.mark.parametrize("value", [None, 3, b"ab", {1}, {1: 2}, np.array(3)])
def test_invalid_sequences_raise(value):
    for arguments in ((value, "ab"), ("ab", value)):
        with pytest.raises(ValueError, match=r"must be a str or an iterable"):
            edit_distance(*arguments)


def test_items_that_cannot_be_compared_raise():
    for items in ([[1]], [np.ones(2)], np.ones((2, 2))):
        with pytest.raises(ValueError, match=r"`first` must be .*hashable"):
            edit_distance(items, [1])
