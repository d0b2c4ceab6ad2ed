"""Lists reads of tensors on the host."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from keras_attn import checks
from keras_attn.backend.host_reads import list_host_reads


def host_reads(
    folders: Sequence[Any] | None = None,
) -> AbstractContextManager[list[str]]:
    """Lists the reads of tensors on the host inside a `with` statement.

    Such a read, as by `float(tensor)` or `if tensor:`, waits until an
    accelerator has computed the tensor. Here all tensors count as being on an
    accelerator, so no GPU is needed.

    Args:
        folders: list of paths. Only reads in or below code of these folders are
            listed, such as `my_package.__path__`. Default None: all reads.

    Returns:
        Context manager of a list of str, which grows with each read: its kind,
        and the innermost lines of code.

    Raises:
        ValueError: `folders` is no list of paths.

    Examples:
        >>> x = keras.ops.ones((2, 3))
        >>> with keras_attn.testing.host_reads() as found:
        ...     mean = keras.ops.mean(x)
        >>> found
        []
        >>> with keras_attn.testing.host_reads() as found:
        ...     mean = float(keras.ops.mean(x))
        >>> len(found) > 0
        True
    """
    if folders is not None:
        checks.iterable("folders", folders, "a list of paths")
        for folder in folders:
            checks.path("folders", folder)
    return list_host_reads(folders)
