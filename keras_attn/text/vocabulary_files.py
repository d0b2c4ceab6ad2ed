"""Reading vocabulary files of other programs."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_attn import checks
from keras_attn.typing import PathLike

# Published vocabularies have a few megabytes.
_MOST_BYTES = 2**28


def vocabulary_folder(
    directory: PathLike, names: Sequence[str]
) -> pathlib.Path:
    """Returns a folder with the given files.

    Args:
        directory: path of the folder.
        names: list of str.

    Returns:
        pathlib.Path.

    Raises:
        ValueError: `directory` is no path, or has no such file.
    """
    folder = pathlib.Path(checks.path("directory", directory))
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(
                f"`directory` must be a folder that contains {name}. "
                f"Received: directory={str(directory)!r}"
            )
    return folder


def read_bytes(path: pathlib.Path) -> bytes:
    """Reads a file whose folder is not trusted.

    Args:
        path: pathlib.Path.

    Returns:
        bytes.

    Raises:
        ValueError: the file is too large for a vocabulary, or a link that
            leaves the folder.
    """
    target, folder = path.resolve(), path.parent.resolve()
    # The cache of Hugging Face has `snapshots/<commit>`, with links to `blobs`.
    blobs = folder.parent.parent / "blobs"
    inside = folder in target.parents or (
        folder.parent.name == "snapshots" and target.parent == blobs
    )
    if not inside:
        raise ValueError(
            f"`directory` must contain {path.name} itself. "
            f"Received: {path}, a link to a file outside the folder"
        )
    size = target.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(
            f"`directory` must contain a {path.name} of at most "
            f"{_MOST_BYTES} bytes. Received: {size} bytes in {path}"
        )
    return target.read_bytes()


def read_text(path: pathlib.Path) -> str:
    """Reads a UTF-8 file.

    Args:
        path: pathlib.Path.

    Returns:
        str.

    Raises:
        ValueError: the file is too large for a vocabulary, or not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"`directory` must contain UTF-8 text in {path.name}. "
            f"Received: {path} ({error})"
        ) from error


def read_json_object(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON file.

    Args:
        path: pathlib.Path.

    Returns:
        dict.

    Raises:
        ValueError: the file is too large, not a JSON object, nested too deeply
            for the parser, or has a key twice.
    """
    expected = f"`directory` must contain a JSON object in {path.name}"
    text = read_text(path)
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except _Twice as error:
        raise ValueError(
            f"{expected}, without duplicates. "
            f"Received: {path}, with {error.args[0]!r} several times"
        ) from error
    except ValueError as error:
        raise ValueError(f"{expected}. Received: {path} ({error})") from error
    except RecursionError as error:
        raise ValueError(
            f"{expected}. Received: {path}, with values nested too deeply"
        ) from error
    if not isinstance(value, dict):
        raise ValueError(
            f"{expected}. Received: {path}, a {type(value).__name__}"
        )
    return value


class _Twice(Exception):
    """A key that occurs twice in an object."""


def _unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)
    return found
