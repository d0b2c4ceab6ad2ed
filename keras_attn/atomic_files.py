"""Files that are whole or not there, whatever happens in between."""

import contextlib
import os
import pathlib

_PARTIAL = ".partial-"
_BLOCK = 1 << 20


@contextlib.contextmanager
def whole_file(path):
    """Lets a file be written under another name, then gives it its own.

    Who reads `path` finds the old file or the new one, never a part: not after
    an error, nor after the process was killed, nor after the power failed. A
    killed process leaves its part behind; `clear_partial` removes it.

    Args:
        path: path of the file, in a folder that exists. One that is there is
            replaced.

    Yields:
        pathlib.Path: the name to write to, in the same folder, with the same
        suffixes. It must be closed again when the context ends.

    Raises:
        OSError: it cannot be written. The file at `path` is as it was.

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
    # Two processes may write the same file: the last one wins.
    partial = path.with_name(f"{_PARTIAL}{os.getpid()}-{path.name}")
    try:
        yield partial
        # The name must not reach the disk before what it stands for.
        _sync(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    # Not every file system can do this; the file is whole all the same.
    with contextlib.suppress(OSError):
        _sync(path.parent)


def writable_folder(name, path):
    """Makes a folder, and sees that files can be written there.

    Args:
        name: str. The argument that names it, for the answer.
        path: path of the folder; made if missing.

    Returns:
        pathlib.Path: the folder.

    Raises:
        ValueError: nothing can be written there.
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


def ensure_room(path, size):
    """Sees that a file of some size can be written now.

    For writers that do not survive a full disk: HDF5, of which Keras makes
    its weight files, may bring down the whole process.

    Args:
        path: path of the file that will be written.
        size: int. Its bytes, at most.

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


def clear_partial(folder, pattern):
    """Removes what killed processes left of files that they were writing.

    Args:
        folder: path. What another process is writing there is lost.
        pattern: str. Glob pattern of the names that the files were to have.
    """
    for partial in pathlib.Path(folder).glob(f"{_PARTIAL}*-{pattern}"):
        partial.unlink(missing_ok=True)


def _sync(path):
    """Waits until the disk holds a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
