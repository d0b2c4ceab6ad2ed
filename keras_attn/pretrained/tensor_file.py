"""Reading and writing of safetensors files."""

import math
import pathlib
from typing import Any, Self

import numpy as np

from keras_attn.atomic_files import ensure_room
from keras_attn.pretrained.json_file import parse_json
from keras_attn.typing import PathLike, Tensor

_HEADER = 256  # upper bound of the header bytes per tensor
_LONGEST_HEADER = 100_000_000  # bytes, the limit of the format
# https://github.com/huggingface/safetensors#format
_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
    "C64": 8,
}
_FLOATS = "F64", "F32", "F16", "BF16"


def safetensors() -> Any:
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

    The constructor reads and checks the header alone: names, dtypes, shapes,
    and sizes against the length of the file. Use it in a `with` statement.

    Args:
        path: path of the file.

    Raises:
        ValueError: not a complete safetensors file, a name that occurs twice,
            or an entry of the wrong type.
    """

    def __init__(self, path: PathLike) -> None:
        self.path: pathlib.Path = pathlib.Path(path)
        self._entries = _read_header(self.path)
        package = safetensors()
        try:
            self._file = package.safe_open(self.path, framework="np")
        except package.SafetensorError as error:
            raise _incomplete(self.path, error) from error
        self.names: frozenset[str] = frozenset(self._entries)

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._file.__exit__(*error)

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a tensor, without reading it."""
        return tuple(self._entries[name]["shape"])

    def check_dtype(self, name: str) -> None:
        """Raises ValueError if a tensor is not of a float dtype."""
        dtype = self._entries[name]["dtype"]
        if dtype not in _FLOATS:
            raise ValueError(
                f"`{name}` in {self.path.name} must be of a float dtype, one "
                f"of {', '.join(_FLOATS)}. Received: {dtype}"
            )

    def read(self, name: str, allow_nonfinite: bool = False) -> Tensor:
        """Returns a tensor as a float32 NumPy array.

        Args:
            name: str.
            allow_nonfinite: bool. Whether it may hold NaN and infinite values.

        Raises:
            ValueError: it does, or a value is too large for float32.
        """
        self.check_dtype(name)
        # A value too large for float32 becomes infinite.
        with np.errstate(over="ignore"):
            array = self._file.get_tensor(name).astype("float32", copy=False)
        if not allow_nonfinite:
            finite = np.isfinite(array)
            if not finite.all():
                odd = array[~finite]
                raise ValueError(
                    f"`{name}` in {self.path.name} must hold finite float32 "
                    "values; `allow_nonfinite=True` loads it as it is. "
                    f"Received: {odd.size} of {array.size} values such as "
                    f"{odd[0]}"
                )
        return array


def _read_header(path):
    """Returns {name: entry} of a safetensors file, after checking it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise _incomplete(path, "its header is longer than the file")
        entries = parse_json(file.read(length), path)
    entries.pop("__metadata__", None)
    end = 0
    for name, entry in entries.items():
        _check_entry(path, name, entry)
        end = max(end, entry["data_offsets"][1])
    if end != size - 8 - length:
        raise _incomplete(
            path, f"{end} bytes of tensors in {size - 8 - length} bytes"
        )
    return entries


def _check_entry(path, name, entry):
    def refuse(what, received):
        raise ValueError(
            f"`{name}` in the header of {path.name} must have {what}. "
            f"Received: {received!r}"
        )

    if not isinstance(entry, dict):
        refuse("an object as its value", entry)
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in _BYTES:
        refuse(f"a `dtype` that is one of {', '.join(_BYTES)}", dtype)
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not _are_sizes(shape):
        refuse("a `shape`, a list of integers >= 0", shape)
    if not _are_sizes(offsets) or len(offsets) != 2:
        refuse("`data_offsets`, two integers >= 0", offsets)
    if offsets[1] - offsets[0] != math.prod(shape) * _BYTES[dtype]:
        refuse(
            f"`data_offsets` of {math.prod(shape) * _BYTES[dtype]} bytes, for "
            f"the shape {tuple(shape)} and dtype {dtype}",
            offsets,
        )


def _are_sizes(value):
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0
        for item in value
    )


def _incomplete(path, why):
    return ValueError(
        f"{path.name} must be a complete safetensors file. "
        f"Received: {path} ({why})"
    )


def write_tensors(path: PathLike, arrays: dict[str, Any]) -> None:
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
