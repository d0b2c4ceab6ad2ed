"""read_captions: images with captions."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.datasets.data_files import TextFile
from keras_attn.datasets.picture_files import (
    MOST_ROWS,
    pillow,
    read_picture,
)
from keras_attn.typing import BadLines, PathLike


class CaptionedImages(NamedTuple):
    """Images, each with a caption.

    Args:
        images: uint8 (N, H, W, 3). RGB. An image with several captions is
            repeated.
        captions: list of N str.
        names: list of N str. The file names of the images. Split by them
            (`split_by_hash`) to have all captions of an image in one part.

    Examples:
        >>> images = np.zeros((1, 50, 80, 3), "uint8")
        >>> data = keras_attn.datasets.CaptionedImages(
        ...     images, ["a black square"], ["0.png"])
        >>> data.images.shape, data.captions[0]
        ((1, 50, 80, 3), 'a black square')
    """

    images: Any
    captions: list[str]
    names: list[str]


def read_captions(
    folder: PathLike, *, height: int = 50, on_bad_lines: BadLines = "error"
) -> CaptionedImages:
    r"""Reads a folder of image files with captions.

    The folder has a file `captions.tsv` with lines `file name<tab>caption`. An
    image may have several lines.

    Args:
        folder: str or `os.PathLike`.
        height: int in [1, 4096]. The height to which all images are resized,
            in pixels. The width is that of the first image at its aspect ratio.
            Default 50.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line of `captions.tsv` that is malformed, not UTF-8, or names no
            readable image; see `read_lines`. Default "error".

    Returns:
        `CaptionedImages`, in the order of the lines.

    Raises:
        DataFileError: the folder has no `captions.tsv` or no captions, or a
            line is bad.
        ImportError: Pillow is not installed.

    Examples:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> Image.new("RGB", (160, 100), "blue").save(folder / "sea.png")
        >>> _ = (folder / "captions.tsv").write_text("sea.png\tThe sea.\n")
        >>> data = keras_attn.datasets.read_captions(folder)
        >>> data.images.shape, data.images[0, 0, 0].tolist(), data.captions
        ((1, 50, 80, 3), [0, 0, 255], ['The sea.'])
    """
    folder = checks.path("folder", folder)
    checks.positive_int("height", height, MOST_ROWS)
    pillow()
    file = TextFile(pathlib.Path(folder, "captions.tsv"), on_bad_lines)
    rows, images, width = [], {}, None
    for number, line in file:
        if line is None or not line.strip():
            continue
        name, _, caption = line.partition("\t")
        if not name or not caption.strip():
            received = checks.shown(line)
            expected = "`file name<tab>caption`"
            file.bad(number, f"expected {expected}, received {received}")
            continue
        if name not in images:
            try:
                image = read_picture(pathlib.Path(folder, name), height, width)
            except ValueError as error:
                file.bad(number, f"expected an image file, received {error}")
                continue
            images[name], width = image, image.shape[1]
        rows.append((name, caption.strip()))
    file.require(rows, "image with a caption")
    return CaptionedImages(
        np.stack([images[name] for name, _ in rows]),
        [caption for _, caption in rows],
        [name for name, _ in rows],
    )
