"""Simulation of a full disk with a file size limit."""

import contextlib
import resource


@contextlib.contextmanager
def full_disk(size=0):
    """Makes writes past `size` bytes of any file fail, as on a full disk.

    Python ignores the signal of the limit, so that the write itself fails; the
    limit also applies to root.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
