"""Reading of JSON objects that may be damaged or hostile."""

import json
import pathlib
from typing import Any


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON object from a file.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        Dict.

    Raises:
        ValueError: the file is not a JSON object in UTF-8, is nested too deeply
            for the parser, or repeats a key of an object.
    """
    return parse_json(path.read_bytes(), path)


def parse_json(content: bytes, path: pathlib.Path) -> dict[str, Any]:
    """Parses a JSON object.

    Args:
        content: bytes.
        path: `pathlib.Path` of the file that they come from, for messages.

    Returns:
        Dict.

    Raises:
        ValueError: as for `read_json`.
    """
    try:
        values = json.loads(
            content.decode("utf-8"), object_pairs_hook=_without_duplicates
        )
    except RecursionError:
        raise ValueError(
            f"{path.name} must be a JSON object of ordinary depth. Received: "
            f"{path}, nested too deeply to be parsed"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"{path.name} must be a JSON object. Received: {path} ({error})"
        ) from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path.name} must be a JSON object. "
            f"Received: {path}, a {type(values).__name__}"
        )
    return values


def _without_duplicates(pairs):
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key `{repeated}` is repeated")
    return values
