"""The safetensors files of a folder, read as one."""

import contextlib
import os
import pathlib
from typing import Any, Self

from keras_attn.pretrained.json_file import read_json
from keras_attn.pretrained.tensor_file import TensorFile
from keras_attn.typing import Tensor

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
# Files of pickled objects, which are not read: unpickling runs code.
_PICKLED = "pytorch_model.bin", "pytorch_model.bin.index.json"


class Checkpoint:
    """The tensors of a folder, in one file or in the shards of an index.

    Use it in a `with` statement.

    Args:
        folder: `pathlib.Path` with `model.safetensors`, or with
            `model.safetensors.index.json` and the files that it names.

    Raises:
        ValueError: no such files, a damaged one, or an index that does not
            agree with its shards.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._stack = contextlib.ExitStack()
        self.names: frozenset[str] = frozenset()
        self._files = {}  # by tensor
        if (folder / WHOLE).is_file():
            self.path: pathlib.Path = folder / WHOLE
            paths = [self.path]
            listed = None
        elif (folder / INDEX).is_file():
            self.path = folder / INDEX
            listed = _listed(self.path)
            paths = [folder / name for name in sorted(set(listed.values()))]
        else:
            raise _missing(folder)
        # Closes the files that are open if a later one is damaged.
        with self._stack:
            for path in paths:
                self._add(path, listed)
            self._stack = self._stack.pop_all()
        self.names = frozenset(self._files)
        absent = sorted(set(listed or ()) - self.names)
        if absent:
            self._stack.close()
            raise ValueError(
                f"{listed[absent[0]]} must hold the tensor `{absent[0]}`, as "
                f"{INDEX} says. Received: no such tensor"
            )

    def _add(self, path, listed):
        if not path.is_file():
            raise ValueError(
                f"{path.name}, which {INDEX} names, must be a file in the "
                f"folder. Received: no file {path}"
            )
        file = self._stack.enter_context(TensorFile(path))
        for name in sorted(file.names):
            if listed is not None and listed.get(name) != path.name:
                raise ValueError(
                    f"`{name}` must be in the shard that {INDEX} names, "
                    f"{listed.get(name)}. Received: it is in {path.name}"
                )
            self._files[name] = file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def file_name(self, name: str) -> str:
        """Returns the name of the file that holds a tensor."""
        return self._files[name].path.name

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a tensor, without reading it."""
        return self._files[name].shape(name)

    def check_dtype(self, name: str) -> None:
        """Raises ValueError if a tensor is not of a float dtype."""
        self._files[name].check_dtype(name)

    def read(self, name: str, allow_nonfinite: bool = False) -> Tensor:
        """Returns a tensor as a float32 NumPy array, see `TensorFile.read`."""
        return self._files[name].read(name, allow_nonfinite)


def _listed(path):
    """Returns {tensor: name of its shard} of an index."""
    listed = read_json(path).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise ValueError(
            f"`weight_map` in {path.name} must map the names of tensors to "
            f"those of files. Received: {type(listed).__name__}"
        )
    for name, shard in listed.items():
        if (
            not isinstance(shard, str)
            or not shard.endswith(".safetensors")
            or shard != os.path.basename(shard.replace("\\", "/"))
        ):
            raise ValueError(
                f"`{name}` in `weight_map` of {path.name} must be in a "
                f"safetensors file of the same folder. Received: {shard!r}"
            )
    return listed


def _missing(folder):
    for name in _PICKLED:
        if (folder / name).is_file():
            return ValueError(
                f"`directory` must hold {WHOLE}. Received: {folder} with "
                f"{name}, which is not read, because unpickling can run any "
                "code; convert it with transformers: "
                f"`AutoModel.from_pretrained({str(folder)!r})"
                f".save_pretrained({str(folder)!r})`, with the class of "
                "`architectures` in config.json in place of `AutoModel`"
            )
    return ValueError(
        f"`directory` must be a folder with {WHOLE} in it; nothing is "
        f"downloaded. Received: directory={str(folder)!r}"
    )
