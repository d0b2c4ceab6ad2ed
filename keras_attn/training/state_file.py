"""Lossless files for nests of arrays and plain values."""

import io
import json
import zipfile
import zlib

import numpy as np

from keras_attn import checks
from keras_attn.atomic_files import whole_file
from keras_attn.typing import Nest, PathLike

# Exceptions raised by files that are truncated or invalid. RuntimeError: parts
# are marked as encrypted, or nested too deeply; AttributeError, MemoryError and
# TypeError: parts have another type or an absurd shape.
UNREADABLE = (
    AttributeError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_MARKS = {"#array", "#tuple"}


def write_state(path: PathLike, state: Nest) -> None:
    """Writes a nest to a file atomically.

    Args:
        path: path of the `.npz` file; an existing file is replaced.
        state: nest of dict with str keys, list, tuple, NumPy arrays, str, int,
            float, bool and None.

    Raises:
        OSError: the file cannot be written.
        ValueError: the nest contains another type.
    """
    arrays = {}
    plain = json.dumps(_packed(state, arrays)).encode("utf-8")
    with whole_file(path) as partial, open(partial, "wb") as file:
        np.savez(file, plain=np.frombuffer(plain, "uint8"), **arrays)


def read_state(path: PathLike) -> Nest:
    """Reads a file of `write_state` and verifies its checksums.

    Args:
        path: path of the file.

    Returns:
        The nest.

    Raises:
        One of `UNREADABLE`: the file is missing, truncated or invalid.
    """
    with zipfile.ZipFile(path) as parts:
        arrays = {
            name.removesuffix(".npy"): _read_array(parts.read(name))
            for name in parts.namelist()
        }
    plain = arrays.pop("plain").tobytes().decode("utf-8")
    return _unpacked(json.loads(plain), arrays)


def _read_array(content):
    # All of the content has been read, so its checksum has been verified before
    # the shape in its header is believed.
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _packed(node, arrays):
    """Converts a nest for JSON and collects its arrays in `arrays`."""
    if isinstance(node, np.generic):
        node = node.item()
    if node is None or isinstance(node, (str, bool, int, float)):
        return node
    if isinstance(node, np.ndarray) and not node.dtype.hasobject:
        name, dtype = f"array-{len(arrays)}", node.dtype.name
        if node.dtype.isbuiltin != 1:  # such as bfloat16: save the bits
            node = node.view(f"uint{8 * node.itemsize}")
        arrays[name] = node
        return {"#array": name, "dtype": dtype}
    if isinstance(node, (list, tuple)):
        items = [_packed(item, arrays) for item in node]
        return {"#tuple": items} if isinstance(node, tuple) else items
    if isinstance(node, dict) and not _MARKS & node.keys():
        if all(isinstance(key, str) for key in node):
            return {key: _packed(item, arrays) for key, item in node.items()}
    raise ValueError(
        "`state` must be a nest of dict with str keys, list, tuple, NumPy "
        "arrays, str, int, float, bool and None. "
        f"Received: {type(node).__name__} {checks.shown(node)}"
    )


def _unpacked(node, arrays):
    if isinstance(node, dict):
        if "#array" in node:
            array = arrays[node["#array"]]
            name = node["dtype"]
            return array if array.dtype.name == name else array.view(name)
        if "#tuple" in node:
            return tuple(_unpacked(item, arrays) for item in node["#tuple"])
        return {key: _unpacked(item, arrays) for key, item in node.items()}
    if isinstance(node, list):
        return [_unpacked(item, arrays) for item in node]
    return node
