"""Atomic file writes."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from keras_attn.typing import PathLike

_PARTIAL = ".partial-"
_BLOCK = 1 << 20


@contextlib.contextmanager
def whole_file(path: PathLike) -> Iterator[Any]:
    """Writes a file atomically: to a temporary name, then renames it.

    Readers of `path` find the old file or the new one, never a partial one,
    even after an error, a killed process or a power failure. A killed process
    leaves its temporary file; `clear_partial` removes it.

    Args:
        path: path of the file, in an existing folder. An existing file is
            replaced.

    Yields:
        pathlib.Path: the temporary path to write to, in the same folder, with
        the same suffixes. Close the file before the context ends.

    Raises:
        OSError: the file cannot be written. The file at `path` is unchanged.
        ValueError: `path` is a folder's, without a file name.

    Examples:
        >>> import pathlib, tempfile
        >>> from keras_attn.atomic_files import whole_file
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.txt"
        >>> with whole_file(path) as partial:
        ...     _ = partial.write_text("all of it")
        >>> path.read_text()
        'all of it'
    """
    path = pathlib.Path(path)
    if path.name in ("", ".."):
        raise ValueError(
            "`path` must be the path of a file. "
            f"Received: path={os.fspath(path)!r}"
        )
    # Two processes may write the same file: the last one wins.
    partial = path.with_name(f"{_PARTIAL}{os.getpid()}-{path.name}")
    try:
        yield partial
        # The contents must reach the disk before the rename does.
        _sync(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    # Not every file system can sync a folder; the file is complete anyway.
    with contextlib.suppress(OSError):
        _sync(path.parent)


def writable_folder(name: str, path: PathLike) -> pathlib.Path:
    """Creates a folder if needed and checks that it is writable.

    Args:
        name: str. Name of the argument, for the error message.
        path: path of the folder; created if missing.

    Returns:
        pathlib.Path: the folder.

    Raises:
        ValueError: the folder is not writable.
    """
    path = pathlib.Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        trial = path / f"can-write-{os.getpid()}"
        with whole_file(trial) as partial:
            partial.write_bytes(b"yes")
        trial.unlink()
    except OSError as error:
        raise ValueError(
            f"`{name}` must be a folder that can be written to. "
            f"Received: {name}={os.fspath(path)!r} "
            f"({error.strerror or error})"
        ) from error
    return path


def ensure_room(path: PathLike, size: int) -> None:
    """Checks that there is room on the disk for a file of a given size.

    For writers that do not survive a full disk: HDF5, which Keras uses for
    weight files, may crash the whole process (h5py/h5py#914).

    Args:
        path: path of the file that will be written.
        size: int. Its size in bytes, at most.

    Raises:
        OSError: the disk or a quota has no room for it.
    """
    trial = pathlib.Path(path).with_name(f"{_PARTIAL}{os.getpid()}-room")
    try:
        with open(trial, "wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                for _ in range(-(-size // _BLOCK)):
                    file.write(bytes(_BLOCK))
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        trial.unlink(missing_ok=True)


def clear_partial(folder: PathLike, pattern: str) -> None:
    """Removes the temporary files that killed processes left.

    Args:
        folder: path. Files that another process is writing there are lost.
        pattern: str. Glob pattern of the final file names.
    """
    for partial in pathlib.Path(folder).glob(f"{_PARTIAL}*-{pattern}"):
        partial.unlink(missing_ok=True)


def _sync(path):
    """Flushes a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
