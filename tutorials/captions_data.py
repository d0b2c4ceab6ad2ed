"""Pictures and captions to train on, to validate and to test."""

import hashlib
import pathlib
from typing import NamedTuple

import nlvr
import numpy as np
from picture_files import read_picture


class Captioned(NamedTuple):
    """Holds pictures, each with a caption.

    Args:
        pictures: uint8 (B, H, W, 3).
        captions: list of B str.
    """

    pictures: np.ndarray
    captions: list


def of_folder(folder, height):
    """Reads pictures with captions.

    Args:
        folder: path. That of NLVR; or one with a file `captions.tsv`, of lines
            with the name of a picture in the folder, a tab, and a caption. A
            picture may have several lines; they stay on one side.
        height: int. Pixels that the pictures shall have; the width is what
            the first picture's shape makes of it.

    Returns:
        Tuple of two `Captioned`, to train on and to test.

    Raises:
        ValueError: no such folder, no captions, or too few.
    """
    folder = pathlib.Path(folder)
    if nlvr.is_nlvr(folder):
        parts = [
            [
                row
                for part in side
                for row in nlvr.read_true(folder, part, height)
            ]
            for side in (nlvr.TRAIN, nlvr.TEST)
        ]
    else:
        parts = _of_table(folder, height)
    counts = [len(part) for part in parts]
    if min(counts) < 2:
        raise ValueError(
            "DATA must have at least two pictures to train on, and two to test"
            f", one in ten. Received: {counts[0]} and {counts[1]}"
        )
    return tuple(
        Captioned(np.stack([p for p, _ in part]), [c for _, c in part])
        for part in parts
    )


def _of_table(folder, height):
    table = folder / "captions.tsv"
    if not table.is_file():
        raise ValueError(
            "DATA must be a folder with the files of NLVR, or with "
            f"captions.tsv. Received: {folder}"
        )
    parts, pictures, width = ([], []), {}, None
    for number, line in enumerate(table.read_text("utf-8").splitlines(), 1):
        name, tab, caption = line.partition("\t")
        if not (name and tab and caption.strip()):
            raise ValueError(
                "captions.tsv must have lines of a file, a tab and a caption. "
                f"Received: line {number}, {line[:60]!r}"
            )
        if name not in pictures:
            pictures[name] = read_picture(folder / name, height, width)
            width = pictures[name].shape[1]
        side = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 10 == 0
        parts[side].append((pictures[name], caption.strip()))
    return parts
