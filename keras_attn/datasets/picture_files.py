"""Pictures in files, all resized to one size."""

from typing import Any

import numpy as np

from keras_attn.typing import PathLike, Tensor

MOST_ROWS = 4096  # to which an image is resized
_MOST_PIXELS = 2**26


def pillow() -> Any:
    """Returns the module `PIL.Image`.

    Raises:
        ImportError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "Reading image files needs Pillow, which is not installed: "
            'pip install "keras-attn[examples]"'
        ) from error
    return Image


def read_picture(
    file: PathLike, height: int, width: int | None = None
) -> Tensor:
    """Reads a picture.

    Args:
        file: path, or a binary file.
        height: int. Its height, in pixels.
        width: int. Its width. Default None: keeps the aspect ratio.

    Returns:
        uint8 (height, width, 3).

    Raises:
        ValueError: the file is missing, no picture, or too wide.
    """
    Image = pillow()
    try:
        with Image.open(file) as picture:
            if width is None:
                width = max(1, round(picture.width * height / picture.height))
            if width * height > _MOST_PIXELS:
                raise ValueError(
                    f"an image of {picture.width} x {picture.height} pixels, "
                    f"which would have {width} x {height}"
                )
            picture = picture.convert("RGB")
            # The mean of the pixels, which keeps small shapes visible.
            picture = picture.resize((width, height), Image.Resampling.BOX)
            return np.asarray(picture, "uint8")
    # Pillow raises SyntaxError and NotImplementedError for some corrupt files.
    except (
        NotImplementedError,
        OSError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as error:
        raise ValueError(str(error)) from error
