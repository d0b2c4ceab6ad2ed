"""Files of tensors, in the form of the package safetensors."""

import pathlib

from keras_attn.atomic_files import ensure_room

_HEADER = 256  # bytes that describe a tensor, more than enough


def safetensors():
    """Returns the module `safetensors`.

    Raises:
        ImportError: it is not installed; the message says what to install.
    """
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(
            "keras_attn.pretrained needs safetensors, which is not installed: "
            "pip install keras-attn[pretrained]"
        ) from error
    return safetensors


class TensorFile:
    """Reads tensors one by one; what is not asked for stays on the disk.

    Use it in a `with` statement.

    Args:
        path: path of the file.

    Raises:
        ValueError: what is no such file.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        package = safetensors()
        try:
            self._file = package.safe_open(self.path, framework="np")
        except package.SafetensorError as error:
            raise ValueError(
                f"{self.path.name} must be a whole file of safetensors. "
                f"Received: {self.path} ({error})"
            ) from error
        self.names = frozenset(self._file.keys())

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *error):
        self._file.__exit__(*error)

    def shape(self, name):
        """Returns the shape of a tensor, without reading it."""
        return tuple(self._file.get_slice(name).get_shape())

    def read(self, name):
        """Returns a tensor as a float32 NumPy array."""
        return self._file.get_tensor(name).astype("float32")


def write_tensors(path, arrays):
    """Writes a file of tensors that other libraries take for PyTorch's.

    Args:
        path: path of the file.
        arrays: {name: NumPy array}.

    Raises:
        OSError: it cannot be written.
    """
    safetensors()
    from safetensors.numpy import save_file

    size = sum(array.nbytes + len(name) for name, array in arrays.items())
    ensure_room(path, size + _HEADER * (len(arrays) + 1))
    # Without this word transformers does not read the file.
    save_file(arrays, path, metadata={"format": "pt"})
