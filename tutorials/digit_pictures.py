"""Small grey pictures with labels: scikit-learn's digits, or a reader's own."""

import zipfile
from typing import NamedTuple

import numpy as np


class Part(NamedTuple):
    """Holds pictures of one use.

    Args:
        images: float32 (N, h, w), 0 to 1.
        labels: int32 (N,), from 0.
    """

    images: np.ndarray
    labels: np.ndarray


class Digits(NamedTuple):
    """Holds pictures to train on, to choose settings by, and to test on.

    Args:
        train: `Part`.
        validation: `Part`.
        test: `Part`.
    """

    train: Part
    validation: Part
    test: Part


def built_in():
    """Returns the 1,797 digits of scikit-learn, 8x8 pixels.

    Returns:
        `Part`.

    Raises:
        ValueError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ValueError(
            "the digits come with scikit-learn, which is not installed. "
            "Install it with: pip install scikit-learn"
        ) from None
    digits = load_digits()
    return Part(
        (digits.images / 16).astype("float32"), digits.target.astype("int32")
    )


def of_file(path, side):
    """Reads pictures of a reader's own.

    Args:
        path: str. An `.npz` file with `images`, (N, h, w), grey, bright on
            dark, and `labels`, (N,), whole numbers from 0.
        side: int. Pixels of a canvas, each way; a picture may have half.

    Returns:
        `Part`; the brightest pixel of all becomes 1.

    Raises:
        ValueError: there is no such file, or something else in it.
    """
    try:
        with np.load(path) as arrays:
            images, labels = arrays["images"], arrays["labels"]
    except (OSError, KeyError, ValueError, AttributeError, zipfile.BadZipFile):
        raise ValueError(
            "DATA must be an .npz file with the arrays images and labels. "
            f"Received: DATA={path}"
        ) from None
    if (
        images.ndim != 3
        or images.dtype.kind not in "buif"
        or not all(4 <= size <= side // 2 for size in images.shape[1:])
        or not np.isfinite(images).all()
        or images.min(initial=0) < 0
        or not images.any()
    ):
        raise ValueError(
            f"images must be of 4 to {side // 2} pixels each way, (N, h, w), "
            "numbers from 0 that are not all 0. "
            f"Received: {images.dtype} {images.shape}"
        )
    if (
        labels.shape != images.shape[:1]
        or labels.dtype.kind not in "ui"
        or labels.min() < 0
        or labels.max() < 1
    ):
        raise ValueError(
            "labels must be whole numbers from 0, one for each image, of two "
            f"classes at least. Received: {labels.dtype} {labels.shape}"
        )
    images = images.astype("float32")
    return Part(images / images.max(), labels.astype("int32"))


def split(part, seed):
    """Shuffles pictures; 2 of 9 are kept for tests, 1 of 9 for validation.

    Args:
        part: `Part`.
        seed: int.

    Returns:
        `Digits`: no picture is in two parts.

    Raises:
        ValueError: a class has no picture to train on, or there are too few.
    """
    order = np.random.default_rng(seed).permutation(len(part.images))
    test, validation = (round(len(order) * share / 9) for share in (2, 1))
    if not validation:
        raise ValueError(
            "there must be pictures to train on, to validate and to test. "
            f"Received: {len(order)} in all"
        )
    pieces = np.split(order, [test, test + validation])
    test, validation, train = (
        Part(part.images[rows], part.labels[rows]) for rows in pieces
    )
    missing = set(range(int(part.labels.max()) + 1)) - set(
        train.labels.tolist()
    )
    if missing:
        raise ValueError(
            "every class from 0 to the largest label needs pictures to train "
            f"on. Received: none of class {min(missing)}"
        )
    return Digits(train, validation, test)
