"""Reading and writing of safetensors files."""

import pathlib

from keras_attn.atomic_files import ensure_room

_HEADER = 256  # upper bound of the header bytes per tensor


def safetensors():
    """Returns the module `safetensors`.

    Raises:
        ImportError: it is not installed.
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
    """A safetensors file whose tensors are read on demand.

    Use it in a `with` statement.

    Args:
        path: path of the file.

    Raises:
        ValueError: not a complete safetensors file.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        package = safetensors()
        try:
            self._file = package.safe_open(self.path, framework="np")
        except package.SafetensorError as error:
            raise ValueError(
                f"{self.path.name} must be a complete safetensors file. "
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
    """Writes a safetensors file that is marked as PyTorch's.

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
    # transformers does not read files without this entry
    # (as of transformers 5.23.0).
    save_file(arrays, path, metadata={"format": "pt"})
