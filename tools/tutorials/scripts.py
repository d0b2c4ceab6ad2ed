"""The tutorials: scripts in percent format."""

import hashlib
import pathlib

FOLDER = pathlib.Path(__file__).parents[2] / "tutorials"


def discover(folder=FOLDER):
    """Finds the tutorials of a folder.

    Args:
        folder: path. Every Python file in it is a tutorial.

    Returns:
        Dict from name to path, sorted by name.
    """
    paths = sorted(pathlib.Path(folder).glob("*.py"))
    return {path.stem: path for path in paths}


def digest(script):
    """Computes the SHA-256 of a file, as hexadecimal digits."""
    return hashlib.sha256(pathlib.Path(script).read_bytes()).hexdigest()
