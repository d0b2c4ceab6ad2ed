"""read_lines: text files, one sentence per line."""

from keras_attn.datasets.data_files import TextFile
from keras_attn.typing import BadLines, PathLike


def read_lines(
    path: PathLike, *, on_bad_lines: BadLines = "error"
) -> list[str]:
    r"""Reads a text file, one sentence per line.

    The text must be UTF-8. Lines end with a line feed or with a carriage return
    and a line feed; other separators, such as U+2028, are part of the text.

    Args:
        path: str or `os.PathLike`. The file, plain or `.gz`.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            malformed line, here one that is not UTF-8: raise `DataFileError`,
            drop it with a warning, drop it silently, or drop it and call the
            callable with a `BadLine`. Default "error".

    Returns:
        List of str, with the empty lines.

    Raises:
        DataFileError: the file cannot be read, or a line is bad.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "sentences.txt")
        >>> _ = path.write_text("Go.\n\nCome back!\n", encoding="utf-8")
        >>> keras_attn.datasets.read_lines(path)
        ['Go.', '', 'Come back!']
    """
    lines = TextFile(path, on_bad_lines)
    return [line for _, line in lines if line is not None]
