"""Files of data sets: opening, decoding, and reports of bad lines."""

import gzip
import inspect
import json
import lzma
import pathlib
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from keras_attn import checks
from keras_attn.typing import BadLines, PathLike

# What the modules of compressed files raise for a corrupt file. RuntimeError: a
# password is needed, or (NotImplementedError) Python does not have the method.
_CORRUPT = (
    EOFError,
    RuntimeError,
    UnicodeDecodeError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class DataFileError(ValueError):
    """A file of a data set cannot be read.

    The message is one line: the file, the line number where there is one, and
    the reason.

    Args:
        path: str. The file.
        reason: str, such as "expected a file, received a folder".
        line: int. Line number, from 1. Default None: the whole file.

    Examples:
        >>> print(keras_attn.datasets.DataFileError(
        ...     "pairs.tsv", "expected a tab, received 'Go.'", line=17))
        pairs.tsv, line 17: expected a tab, received 'Go.'
    """

    path: PathLike
    reason: str
    line: int | None

    def __init__(
        self, path: PathLike, reason: str, line: int | None = None
    ) -> None:
        super().__init__(path, reason, line)
        self.path, self.reason, self.line = path, reason, line

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}: {self.reason}"


class BadLine(NamedTuple):
    r"""A malformed line, as passed to a callable `on_bad_lines` of a reader.

    Args:
        path: str. The file.
        line: int. Line number, from 1.
        reason: str. What was expected and what was received.

    Examples:
        >>> bad_lines = []
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "pairs.tsv")
        >>> _ = path.write_text("Go.\tVe.\nStop.\n", encoding="utf-8")
        >>> pairs = keras_attn.datasets.read_tsv_pairs(
        ...     path, on_bad_lines=bad_lines.append)
        >>> len(pairs), bad_lines[0].line
        (1, 2)
        >>> print(str(bad_lines[0]).removeprefix(f"{path}, "))
        line 2: expected `source<tab>target`, received 'Stop.'
    """

    path: PathLike
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.reason}"


class TextFile:
    """The lines of a UTF-8 text file.

    A byte order mark is removed. Lines end with a line feed, and a carriage
    return before it is removed. Other line separators, such as U+2028 or a form
    feed, are part of the text.

    Args:
        path: path of the file, plain or `.gz`.
        on_bad_lines: see `read_lines`.
        members: tuple of str, as for `read_bytes`.
        marker: bytes, as for `read_bytes`.
        name: str. Name of the argument `path`, for error messages.
    """

    lines: list[str]
    undecodable: dict[int, str]

    def __init__(
        self,
        path: PathLike,
        on_bad_lines: BadLines = "error",
        members: tuple[str, ...] = (),
        marker: bytes = b"",
        name: str = "path",
    ) -> None:
        self.path: str = checks.path(name, path)
        self._on_bad_lines = check_on_bad_lines(on_bad_lines)
        content = read_bytes(self.path, members, marker)
        # Undecodable bytes are replaced in these.
        self.lines, self.undecodable = _decode(content)

    def __iter__(self) -> Iterator[Any]:
        """Yields (number, line); `line` is None if it was not UTF-8."""
        for number, line in enumerate(self.lines, 1):
            if number in self.undecodable:
                self.bad(number, self.undecodable[number])
                line = None
            yield number, line

    def bad(self, number: int, reason: str) -> None:
        """Handles a bad line as the caller of the reader asked."""
        if self._on_bad_lines == "error":
            raise DataFileError(self.path, reason, number)
        if callable(self._on_bad_lines):
            self._on_bad_lines(BadLine(self.path, number, reason))
        elif self._on_bad_lines == "warn":
            warnings.warn(
                str(DataFileError(self.path, reason, number)),
                stacklevel=_frames_of_package(),
            )

    def require(self, records: Any, what: str) -> Any:
        """Returns `records`, or raises if there are none."""
        return require(self.path, records, what)


def check_on_bad_lines(value: Any) -> Any:
    """Returns the argument `on_bad_lines` if it is valid, else raises."""
    is_name = isinstance(value, str) and value in ("error", "warn", "skip")
    if not is_name and not callable(value):
        raise ValueError(
            "`on_bad_lines` must be 'error', 'warn', 'skip' or a callable. "
            f"Received: on_bad_lines={checks.shown(value)}"
        )
    return value


def require(path: PathLike, records: Any, what: str) -> Any:
    """Returns `records`, or raises `DataFileError` if there are none."""
    if not len(records):
        raise DataFileError(
            path, f"expected at least one {what}, received none"
        )
    return records


def read_bytes(
    path: PathLike, members: tuple[str, ...] = (), marker: bytes = b""
) -> bytes:
    """Reads a file, plain, `.gz` or in a `.zip`.

    Args:
        path: PathLike.
        members: tuple of str. Suffixes of a file in a `.zip`, of which there
            must be one. Empty: a `.zip` raises.
        marker: bytes. What that file must contain.

    Returns:
        Bytes.

    Raises:
        DataFileError: the file is missing, unreadable or corrupt.
    """
    suffix = pathlib.Path(path).suffix.lower()
    try:
        if suffix == ".zip":
            return _unzip(path, members, marker)
        with gzip.open(path) if suffix == ".gz" else open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise DataFileError(path, "no such file") from error
    except IsADirectoryError as error:
        raise DataFileError(
            path, "expected a file, received a folder"
        ) from error
    except _CORRUPT as error:
        raise DataFileError(path, f"cannot be decompressed: {error}") from error
    except OSError as error:
        reason = error.strerror or error
        raise DataFileError(path, f"cannot be read: {reason}") from error


def read_json(path: PathLike) -> Any:
    """Reads a JSON file, plain or `.gz`, or raises `DataFileError`."""
    path = checks.path("path", path)
    content = read_bytes(path)
    lines, undecodable = _decode(content)
    for number, reason in undecodable.items():
        raise DataFileError(path, reason, number)
    try:
        return json.loads("\n".join(lines))
    except json.JSONDecodeError as error:
        reason = f"expected JSON, received invalid JSON: {error.msg}"
        raise DataFileError(path, reason, error.lineno) from error
    # Integers of too many digits, and too many nested lists.
    except (RecursionError, ValueError) as error:
        reason = f"expected JSON, received an error: {error}"
        raise DataFileError(path, reason) from error


def parse_record(
    path: PathLike, where: str, parse: Callable[..., Any], *arguments: Any
) -> Any:
    """Calls a function on a part of a JSON file.

    Args:
        path: PathLike.
        where: str. The part, for error messages.
        parse: callable. It raises ValueError, or KeyError, TypeError or
            AttributeError where a list, object or text is another of them.
        *arguments: its arguments.

    Returns:
        What it returns.

    Raises:
        DataFileError: `parse` raised one of these.
    """
    try:
        return parse(*arguments)
    except KeyError as error:
        reason = f"expected a field {error}, received none"
    except (AttributeError, TypeError) as error:
        reason = f"expected another structure, received an error: {error}"
    except ValueError as error:
        reason = str(error)
    raise DataFileError(path, f"{where}: {reason}")


def read_tar(
    path: pathlib.Path, is_wanted: Callable[..., Any]
) -> Iterator[Any]:
    """Yields the files in a `.tar` archive, compressed or not.

    Args:
        path: `pathlib.Path`.
        is_wanted: callable of the path of a file, which starts with `path`.

    Yields:
        Tuple (path, content) of `pathlib.Path` and bytes.

    Raises:
        DataFileError: the archive cannot be read.
    """
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                file = path / member.name
                if member.isfile() and is_wanted(file):
                    yield file, archive.extractfile(member).read()
    except (OSError, tarfile.TarError, *_CORRUPT) as error:
        # A list of what was tried follows in further lines.
        reason = str(error).partition("\n")[0].rstrip(":")
        raise DataFileError(
            str(path), f"cannot be unpacked: {reason}"
        ) from error


def _unzip(path, members, marker):
    if not members:
        raise DataFileError(
            path, "expected a plain or .gz file, received a .zip"
        )
    with zipfile.ZipFile(path) as archive:
        found = {
            name: content
            for name in archive.namelist()
            if name.endswith(members)
            # The terms of use in the archives of manythings.org, and the
            # metadata that macOS adds.
            and not name.endswith("_about.txt")
            and not name.startswith("__MACOSX/")
            and marker in (content := archive.read(name))
        }
    if len(found) != 1:
        kind = " or ".join(members) + (" file with tabs" if marker else " file")
        names = ", ".join(sorted(found)) or "none"
        raise DataFileError(path, f"expected one {kind}, received {names}")
    return next(iter(found.values()))


def _decode(content):
    """Returns the lines of a file, and why some cannot be decoded."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content:
        return [], {}
    undecodable = {}
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("utf-8", errors="replace")
        for number, line in enumerate(content.split(b"\n"), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                part = line[error.start : error.start + 8]
                undecodable[number] = f"expected UTF-8 text, received {part!r}"
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines], undecodable


def _frames_of_package():
    """Returns the `stacklevel` of the code that called a reader."""
    package = __name__.rpartition(".")[0] + "."
    frame, level = inspect.currentframe().f_back, 1
    while frame and frame.f_globals.get("__name__", "").startswith(package):
        frame, level = frame.f_back, level + 1
    return level
