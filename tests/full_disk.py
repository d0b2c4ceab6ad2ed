"""A disk without room: no file of this process may grow past a size."""

import contextlib
import resource


@contextlib.contextmanager
def full_disk(size=0):
    """Lets writing past `size` bytes of any file fail, as on a full disk.

    Python ignores the signal that comes with the limit, so that the write
    itself fails, and it holds for the superuser as well.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
