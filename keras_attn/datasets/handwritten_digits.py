"""load_handwritten_digits: scikit-learn's images of digits, in three splits."""

import hashlib
from typing import Any, NamedTuple

from keras_attn import checks
from keras_attn.datasets.content_split import SPLITS

_TEST, _VALIDATION = 399, 200


class HandwrittenDigits(NamedTuple):
    """Images of handwritten digits.

    Args:
        images: float32 (N, 8, 8) in [0, 1]. Bright digits on black.
        labels: int32 (N,). The digits, 0 to 9.

    Examples:
        >>> digits = keras_attn.datasets.load_handwritten_digits("test")
        >>> digits.images.shape, digits.labels.shape
        ((399, 8, 8), (399,))
    """

    images: Any
    labels: Any


def load_handwritten_digits(split: str = "train") -> HandwrittenDigits:
    """Loads the handwritten digits of scikit-learn.

    1,797 images of 8 x 8 pixels, a part of the Optical Recognition of
    Handwritten Digits data set (Alpaydin and Kaynak 1998,
    https://doi.org/10.24432/C50P49). Nothing is downloaded: they are files of
    scikit-learn. In the order of a hash of their pixels, the first 399 are the
    test split, the next 200 the validation split, and the last 1,198 the
    training split. The same people may have written in all of them.

    Args:
        split: "train", "validation" or "test". Default "train".

    Returns:
        `HandwrittenDigits`.

    Raises:
        ImportError: scikit-learn is not installed.

    Examples:
        >>> digits = keras_attn.datasets.load_handwritten_digits()
        >>> digits.images.shape, digits.labels[:5].tolist()
        ((1198, 8, 8), [6, 3, 8, 5, 4])
    """
    checks.choice("split", split, SPLITS)
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "The handwritten digits need scikit-learn, which is not installed: "
            'pip install "keras-attn[examples]"'
        ) from error
    digits = load_digits()
    pixels = digits.images.astype("uint8")
    hashes = [hashlib.sha256(image.tobytes()).digest() for image in pixels]
    order = sorted(range(len(pixels)), key=hashes.__getitem__)
    rows = {
        "test": order[:_TEST],
        "validation": order[_TEST : _TEST + _VALIDATION],
        "train": order[_TEST + _VALIDATION :],
    }[split]
    images = pixels[rows].astype("float32") / 16
    return HandwrittenDigits(images, digits.target[rows].astype("int32"))
