"""read_nlvr: drawn images with sentences about them."""

import io
import json
import os
import pathlib

import numpy as np

from keras_attn import checks
from keras_attn.datasets.captioned_images import CaptionedImages
from keras_attn.datasets.data_files import DataFileError, TextFile, read_tar
from keras_attn.datasets.picture_files import (
    MOST_ROWS,
    pillow,
    read_picture,
)
from keras_attn.typing import BadLines, PathLike


def read_nlvr(
    folder: PathLike,
    split: str,
    *,
    height: int = 50,
    label: bool = True,
    on_bad_lines: BadLines = "error",
) -> CaptionedImages:
    """Reads the images of NLVR, each with a sentence about it.

    Natural Language for Visual Reasoning (Suhr et al. 2017,
    https://aclanthology.org/P17-2034, https://github.com/lil-lab/nlvr): images
    of 400 x 100 pixels, three gray boxes with colored shapes, and English
    sentences that are true or false of them. The development set has 989
    sentences (about 250 distinct ones), the two test sets, "test" and "hidden",
    990 and 985.

    Args:
        folder: str or `os.PathLike`. It has `<split>.json` or `<split>.json.gz`
            and the images `<split>-<identifier>-0.png`, in any folder inside or
            in the archive `images_<split>.tar.gz`.
        split: str. "train", "dev", "test" or "hidden".
        height: int in [1, 4096]. The height of the images, in pixels; the
            width is four times as much. Default 50.
        label: bool. Whether to read the sentences that are true of their image
            or those that are false. Default True.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line of the JSON file that is malformed, not UTF-8, or has no
            image; see `read_lines`. Default "error".

    Returns:
        `CaptionedImages`, in the order of the lines.

    Raises:
        DataFileError: a file cannot be read, there are no such sentences, or a
            line is bad.
        ImportError: Pillow is not installed.

    Examples:
        >>> import json, pathlib, tempfile
        >>> from PIL import Image
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> Image.new("RGB", (400, 100)).save(folder / "dev-7-0-0.png")
        >>> line = {"identifier": "7-0", "label": "true", "sentence": "Dark."}
        >>> _ = (folder / "dev.json").write_text(json.dumps(line))
        >>> data = keras_attn.datasets.read_nlvr(folder, "dev")
        >>> data.images.shape, data.captions
        ((1, 50, 200, 3), ['Dark.'])
    """
    folder = pathlib.Path(checks.path("folder", folder))
    checks.choice("split", split, ("train", "dev", "test", "hidden"))
    checks.positive_int("height", height, MOST_ROWS)
    checks.boolean("label", label)
    pillow()
    names = f"{split}.json", f"{split}.json.gz"
    paths = [folder / name for name in (*names, f"{split}/{split}.json")]
    # Not `Path.is_file`, which raises for names that are too long.
    existing = [path for path in paths if os.path.isfile(path)]
    if not existing:
        reason = f"expected a folder with {' or '.join(names)}"
        raise DataFileError(str(folder), reason)
    file = TextFile(existing[0], on_bad_lines)
    rows = []
    for number, line in file:
        if line is None or not line.strip():
            continue
        sentence, name, is_true = _parse(line, split)
        if is_true is None:
            file.bad(
                number,
                "expected JSON with the texts `sentence`, `identifier` and "
                f"`label`, received {checks.shown(line)}",
            )
        elif is_true == label:
            rows.append((number, name, sentence))
    images = _read_images(folder, split, {row[1] for row in rows}, height)
    for number, name, _ in rows:
        if name not in images:
            file.bad(number, f"expected an image {name}, received none")
    rows = [row for row in rows if row[1] in images]
    file.require(rows, f"sentence that is {str(label).lower()}")
    return CaptionedImages(
        np.stack([images[name] for _, name, _ in rows]),
        [sentence for _, _, sentence in rows],
        [name for _, name, _ in rows],
    )


def _parse(line, split):
    """Returns the sentence, the image name, and the label or None."""
    try:
        row = json.loads(line)
        sentence, identifier = row["sentence"], row["identifier"]
        is_true = {"true": True, "false": False}[row["label"]]
    except (KeyError, RecursionError, TypeError, ValueError):
        return None, None, None
    if not isinstance(sentence, str) or not isinstance(identifier, str):
        return None, None, None
    return sentence, f"{split}-{identifier}-0.png", is_true


def _read_images(folder, split, names, height):
    """Returns a dict of name to uint8 (height, 4 height, 3)."""
    archive = folder / f"images_{split}.tar.gz"
    if archive.is_file():
        contents = read_tar(archive, lambda path: path.name in names)
        files = ((path, io.BytesIO(content)) for path, content in contents)
    else:
        paths = sorted(folder.rglob("*.png"))
        files = ((path, path) for path in paths if path.name in names)
    images = {}
    for path, file in files:
        try:
            images[path.name] = read_picture(file, height, 4 * height)
        except ValueError as error:
            reason = f"expected an image, received {error}"
            raise DataFileError(str(path), reason) from error
    return images
