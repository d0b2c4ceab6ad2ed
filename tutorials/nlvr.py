"""Pictures with sentences that people wrote of them: the files of NLVR."""

import gzip
import io
import json
import pathlib
import tarfile

from picture_files import read_picture

# Which of its three parts are trained on, and which is the test.
TRAIN, TEST = ("dev", "test"), ("hidden",)


def is_nlvr(folder):
    """Returns whether a folder holds the three parts."""
    return all(
        (pathlib.Path(folder) / f"{part}.json.gz").is_file()
        and (pathlib.Path(folder) / f"images_{part}.tar.gz").is_file()
        for part in TRAIN + TEST
    )


def read_true(folder, part, height):
    """Reads the pictures of which a sentence is true, each with the sentence.

    Suhr et al. 2017, https://aclanthology.org/P17-2034/: three grey boxes with
    shapes in them, 400 x 100 pixels.

    Args:
        folder: path.
        part: `"dev"`, `"test"` or `"hidden"`.
        height: int. Pixels that a picture shall have; its width is four times
            as many.

    Returns:
        List of tuple (picture, sentence): uint8 (height, 4 height, 3) and str.

    Raises:
        ValueError: files that are not as expected.
    """
    folder = pathlib.Path(folder)
    try:
        with gzip.open(folder / f"{part}.json.gz", "rt", encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        sentences = {
            f"{part}-{row['identifier']}-0.png": row["sentence"]
            for row in rows
            if row["label"] == "true"
        }
        found = []
        with tarfile.open(folder / f"images_{part}.tar.gz") as archive:
            for member in archive:
                name = pathlib.PurePosixPath(member.name).name
                if name in sentences:
                    file = io.BytesIO(archive.extractfile(member).read())
                    picture = read_picture(file, height, 4 * height)
                    found.append((picture, sentences[name], name))
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        raise ValueError(
            f"DATA must hold the files of NLVR. Received: {folder}, {error}"
        ) from error
    found.sort(key=lambda row: row[2])
    return [(picture, sentence) for picture, sentence, _ in found]
