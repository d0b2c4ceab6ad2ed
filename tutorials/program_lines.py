"""What a program with a saved model needs: its files, and lines to work on."""

import pathlib
import sys

import corpora


def saved_folder(folder, *names):
    """Returns the path of a folder that has the files of a saved model.

    Args:
        folder: path.
        *names: str, of the files.

    Raises:
        ValueError: a file is missing.
    """
    folder = pathlib.Path(folder)
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(
                f"MODEL must be a folder with {' and '.join(names)}. "
                f"Received: {folder}, without {name}"
            )
    return folder


def input_lines(path):
    """Returns the lines to work on.

    Args:
        path: path of a file, plain or `.gz`; empty: the keyboard.

    Returns:
        List of str, the lines of the file, empty ones too; or an iterator over
        the lines that are typed, without empty ones.

    Raises:
        CorpusError: the file cannot be read.
    """
    return corpora.read_lines(path) if path else _typed()


def _typed():
    if sys.stdin.isatty():
        print("Type a line and press Enter; Ctrl-D ends.")
    for line in sys.stdin:
        if line.strip():
            yield line.strip()
