"""make_cluttered_digits: digits on large canvases, among parts of others."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.datasets.content_split import SPLITS
from keras_attn.datasets.handwritten_digits import load_handwritten_digits
from keras_attn.datasets.sampling import check_arguments
from keras_attn.datasets.stable_random import StableRandom

_LARGEST_SIZE, _MOST_PIXELS = 4096, 2**30
_MOST_DISTRACTORS = 10_000


class ClutteredDigits(NamedTuple):
    """Images of a digit among clutter.

    Args:
        images: float32 (n, H, W, 1) in [0, 1]. Bright digits on black.
        labels: int32 (n,). The digits.
        corners: int32 (n, 2). Row and column of the first pixel of each digit.

    Examples:
        >>> data = keras_attn.datasets.make_cluttered_digits(5)
        >>> row, column = data.corners[0]
        >>> data.images[0, row : row + 8, column : column + 8, 0].shape
        (8, 8)
    """

    images: Any
    labels: Any
    corners: Any


def make_cluttered_digits(
    n: int,
    *,
    seed: int = 0,
    split: str = "train",
    size: int = 60,
    distractors: int = 8,
    distractor_size: int = 4,
    spread: float = 1.0,
    digits: tuple[Any, Any] | None = None,
) -> ClutteredDigits:
    """Makes images of a digit at a random position among distractors.

    For models that look at a part of the image at a time, as in Recurrent
    Models of Visual Attention (Mnih et al. 2014,
    https://arxiv.org/abs/1406.6247), whose cluttered MNIST has canvases of
    60 x 60 pixels too. Distractors are squares cut from other digits. The digit
    is drawn last, so nothing covers it. Every digit is used once before any is
    used again.

    Args:
        n: int >= 0. Number of images.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". The part of the digits of
            scikit-learn, see `load_handwritten_digits`. Default "train".
        size: int in [1, 4096]. Height and width of the images, in pixels.
            Default 60.
        distractors: int in [0, 10000]. Distractors per image. Default 8.
        distractor_size: int. Height and width of a distractor, in pixels, at
            most those of a digit. Default 4.
        spread: float in [0, 1]. How far digits may be from the center: 0 (in
            the center) to 1 (anywhere). Default 1.
        digits: pair (images, labels). Other digits, for example those of MNIST:
            float (N, h, w) in [0, 1] or uint8 (N, h, w), at most `size` high
            and wide; and int (N,). They are used whatever `split` is, so pass
            those of one split. Default None: the digits of scikit-learn.

    Returns:
        `ClutteredDigits`.

    Raises:
        ImportError: `digits` is None and scikit-learn is not installed.
        ValueError: an argument is invalid.

    Examples:
        >>> data = keras_attn.datasets.make_cluttered_digits(100)
        >>> data.images.shape, data.images.dtype
        ((100, 60, 60, 1), dtype('float32'))
        >>> data.labels[:5].tolist(), data.corners[0].tolist()
        ([7, 6, 3, 4, 8], [13, 17])
    """
    check_arguments(n, seed, split)
    checks.integer("size", size, 1, _LARGEST_SIZE)
    checks.integer("n", n, 0, _MOST_PIXELS // size**2)
    checks.integer("distractors", distractors, 0, _MOST_DISTRACTORS)
    checks.between("spread", spread, 0, 1)
    if digits is None:
        digits, labels = load_handwritten_digits(split)
    else:
        digits, labels = _read_digits(digits)
    smallest = min(digits.shape[1:])
    checks.integer("distractor_size", distractor_size, 1, smallest)
    largest = max(digits.shape[1:])
    if size < largest:
        raise ValueError(
            f"`size` must be at least {largest}, the size of the digits. "
            f"Received: size={size}"
        )
    random = StableRandom(seed, SPLITS.index(split))
    rounds = [random.order(len(digits)) for _ in range(0, n, len(digits))]
    chosen = np.concatenate([*rounds, np.zeros(0, "int64")])[:n]
    images = np.zeros((n, size, size), "float32")
    rows = np.arange(n)[:, None, None]
    for _ in range(distractors):
        source = random.integers(len(digits), (n, 1, 1))
        cut = _squares(random, n, digits.shape[1:], distractor_size)
        put = _squares(random, n, (size, size), distractor_size)
        images[(rows, *put)] = digits[(source, *cut)]
    corners = np.stack(
        [
            _corners(random, n, size - length, spread)
            for length in digits.shape[1:]
        ],
        axis=1,
    )
    images[(rows, *_squares_at(corners, digits.shape[1:]))] = digits[chosen]
    return ClutteredDigits(
        images[..., None], labels[chosen], corners.astype("int32")
    )


def _corners(random, n, most, spread):
    """Returns int64 (n,) in [0, most], at most `spread` from the middle."""
    distance = round(spread * most / 2)
    low = max(0, most // 2 - distance)
    high = min(most, most // 2 + distance)
    return random.integers(high + 1, (n,), start=low)


def _squares(random, n, shape, size):
    """Returns the indices of the pixels of random squares in images."""
    corners = [random.integers(length - size + 1, (n,)) for length in shape]
    return _squares_at(np.stack(corners, axis=1), (size, size))


def _squares_at(corners, shape):
    """Returns indices (n, h, 1) of rows and (n, 1, w) of columns."""
    rows = corners[:, 0, None, None] + np.arange(shape[0])[:, None]
    return rows, corners[:, 1, None, None] + np.arange(shape[1])


def _read_digits(digits):
    """Returns float32 images and int32 labels, or raises ValueError."""
    if not isinstance(digits, (list, tuple)) or len(digits) != 2:
        raise ValueError(
            "`digits` must be a pair (images, labels) of arrays. "
            f"Received: digits={checks.shown(digits)}"
        )
    images, labels = (
        np.asarray(checks.array("digits", item)) for item in digits
    )
    if (
        images.ndim != 3
        or not images.size
        or (images.dtype != "uint8" and images.dtype.kind != "f")
    ):
        raise ValueError(
            "`digits` must have images of shape (N, h, w), float or uint8. "
            f"Received: {images.dtype} {images.shape}"
        )
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "ui":
        raise ValueError(
            "`digits` must have an int label for each image. "
            f"Received: {len(images)} images, labels {labels.dtype} "
            f"{labels.shape}"
        )
    checks.int32("digits", labels)
    if images.dtype == "uint8":
        images = images / np.float32(255)
    # Not `any` of the opposite, because of NaN.
    elif not ((images >= 0) & (images <= 1)).all():
        raise ValueError(
            "`digits` must have images in [0, 1], if they are floats. "
            f"Received: values from {images.min()} to {images.max()}"
        )
    return images.astype("float32"), labels.astype("int32")
