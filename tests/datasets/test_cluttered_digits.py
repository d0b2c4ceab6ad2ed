"""Digits among distractors."""

import itertools
import sys

import numpy as np
import pytest

from keras_attn.datasets import load_handwritten_digits, make_cluttered_digits
from tests.helpers.digest import digest

SPLITS = "train", "validation", "test"


def random_digits(count, size=8, seed=0):
    images = np.random.default_rng(seed).uniform(0.2, 1, (count, size, size))
    return images.astype("float32"), np.arange(count)


def at_corners(data, height, width):
    return [
        image[row : row + height, column : column + width, 0]
        for image, (row, column) in zip(data.images, data.corners, strict=True)
    ]


def test_handwritten_digits():
    original = pytest.importorskip("sklearn.datasets").load_digits()
    labels = {
        (image / 16).astype("float32").tobytes(): label
        for image, label in zip(original.images, original.target, strict=True)
    }
    splits = [load_handwritten_digits(split) for split in SPLITS]
    assert [len(split.labels) for split in splits] == [1198, 200, 399]
    assert digest(splits) == "6c83dd0d6d390be5"
    known = [set(map(np.ndarray.tobytes, images)) for images, _ in splits]
    assert sum(map(len, known)) == 1797 == len(set().union(*known))
    for split, (images, digits) in enumerate(splits):
        assert images.dtype == "float32" and digits.dtype == "int32"
        assert [labels[image.tobytes()] for image in images] == digits.tolist()
        assert min(np.bincount(digits, minlength=10)) >= 15
        # Among distractors.
        data = make_cluttered_digits(100, split=SPLITS[split], seed=3)
        found = [digit.tobytes() for digit in at_corners(data, 8, 8)]
        assert known[split].issuperset(found)
        assert [labels[digit] for digit in found] == data.labels.tolist()
    first, again, other = (make_cluttered_digits(9, seed=s) for s in (1, 1, 2))
    assert digest(first) == digest(again) != digest(other)
    assert digest(make_cluttered_digits(20)) == "4e5f0c4d07c4eb06"


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r'install "keras-attn\[examples\]"'):
        make_cluttered_digits(1)
    assert make_cluttered_digits(1, digits=random_digits(2)).labels < 2


def test_digits_and_their_positions():
    images, labels = random_digits(150)
    data = make_cluttered_digits(300, size=40, digits=(images, labels))
    assert data.images.shape == (300, 40, 40, 1)
    assert [a.dtype for a in data] == ["float32", "int32", "int32"]
    for digit, label in zip(at_corners(data, 8, 8), data.labels, strict=True):
        np.testing.assert_array_equal(digit, images[label])
    # Each digit is used once before any is used again.
    rounds = data.labels[:150].tolist(), data.labels[150:].tolist()
    assert rounds[0] != rounds[1]
    assert sorted(rounds[0]) == sorted(rounds[1]) == [*range(150)]
    # Positions reach all edges.
    assert data.corners.min() == 0 and data.corners.max() == 32
    assert (np.bincount(data.corners[:, 0] // 11, minlength=3) > 60).all()
    for spread, low, high in ((0, 16, 16), (0.5, 8, 24)):
        data = make_cluttered_digits(
            300, size=40, spread=spread, digits=(images, labels)
        )
        assert (data.corners.min(), data.corners.max()) == (low, high)


def test_distractors_are_cut_from_digits():
    digits = random_digits(3)
    data = make_cluttered_digits(40, size=48, distractors=1, digits=digits)
    cuts = itertools.product(digits[0], range(5), range(5))
    squares = {image[r : r + 4, c : c + 4].tobytes() for image, r, c in cuts}
    whole = 0
    for image, (row, column) in zip(data.images, data.corners, strict=True):
        image[row : row + 8, column : column + 8] = 0
        rows, columns, _ = np.nonzero(image)
        # A digit may cover a distractor.
        assert len(rows) <= 16
        if len(rows) == 16:
            square = image[rows[0] : rows[0] + 4, columns[0] : columns[0] + 4]
            assert square.tobytes() in squares
            whole += 1
    assert whole > 20
    data = make_cluttered_digits(40, distractors=0, digits=digits)
    assert ((data.images > 0).sum((1, 2, 3)) == 64).all()


def test_digits_of_users():
    pixels = np.arange(2 * 5 * 7, dtype="uint8").reshape(2, 5, 7)
    digits = pixels, np.array([7, 300])
    data = make_cluttered_digits(2, size=7, distractors=2, digits=digits)
    assert data.images.shape == (2, 7, 7, 1)
    assert sorted(data.labels) == [7, 300]
    assert set(data.corners[:, 1]) == {0}
    for digit, label in zip(at_corners(data, 5, 7), data.labels, strict=True):
        expected = pixels[[7, 300].index(label)] / 255
        np.testing.assert_allclose(digit, expected, atol=1e-6)
