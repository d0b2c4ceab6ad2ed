"""Pictures from files, all of one size."""

import pathlib

import numpy as np
from PIL import Image, UnidentifiedImageError

KINDS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


def read_picture(source, height, width=None):
    """Reads a picture.

    Args:
        source: path, or a binary file.
        height: int. Pixels that it shall have.
        width: int. Likewise; None: as many as keep its shape.

    Returns:
        Uint8 (height, width, 3).

    Raises:
        ValueError: there is no picture.
    """
    try:
        with Image.open(source) as picture:
            if width is None:
                width = max(1, round(picture.width * height / picture.height))
            picture = picture.convert("RGB")
            picture = picture.resize((width, height), Image.Resampling.BOX)
            return np.asarray(picture, "uint8")
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(
            f"there must be a picture. Received: {source} ({error})"
        ) from error


def pictures_below(path):
    """Returns the paths of pictures: a file, or those in a folder, sorted.

    Args:
        path: path of a picture or of a folder.

    Returns:
        List of `pathlib.Path`.

    Raises:
        ValueError: nothing there.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in KINDS)
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise ValueError(
            f"INPUT must be a picture or a folder of some ({', '.join(KINDS)})."
            f" Received: {path}"
        )
    return found
