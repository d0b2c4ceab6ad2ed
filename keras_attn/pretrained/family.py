"""Description of a family of published models."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from keras_attn.pretrained.checkpoint import Checkpoint


class Family(NamedTuple):
    """Functions with which `load` and `save` handle a model family.

    Args:
        model_type: str. The value of `model_type` in its `config.json`.
        serves: function of a model that returns whether it is of this family.
        make: function of a `Config` and of the set of names of the file's
            tensors that returns a model with random weights.
        describe: function of a model that returns the values of `config.json`,
            or raises ValueError if the model does not fit the family.
        tensors: function of a model that returns one `TensorName` per weight.
        sizes: function of a `Config` that returns a `Sizes`, what the file must
            hold before `make` creates weights of these sizes.
        constants: function of a model that returns {name: `Constant` or None}:
            tensors that a file may contain but that are not weights here. None:
            a buffer that is skipped, such as position ids or a causal mask.
        signature: tuple of str. A file that holds one of these tensors is of
            this family and of no other. Default: none.
        heads: dict from a `head` of `load` to a value of `architectures`.
            Default: none.
        head_prefixes: tuple of str. Tensors with one of these prefixes belong
            to a head; those of another head are skipped. Default: none.
        adapt: function of a `Config` and of the result of `tensors` that
            returns it with the layouts of that config, if they can differ from
            those that `save` writes. Default: the same layouts for all.
    """

    model_type: str
    serves: Any
    make: Any
    describe: Any
    tensors: Any
    sizes: Any
    constants: Any
    signature: tuple[Any, ...] = ()
    heads: Mapping[str, str] = MappingProxyType({})
    head_prefixes: tuple[Any, ...] = ()
    adapt: Any = lambda config, names: names


class Constant(NamedTuple):
    """A tensor that follows from the config and must agree with it.

    Args:
        shape: tuple of int.
        values: function that returns the array.
    """

    shape: tuple[Any, ...]
    values: Any


class Sizes(NamedTuple):
    """The tensors that carry the sizes of a config.

    Args:
        shapes: list of (names, shape): a tensor under one of the names must
            have the shape.
        layers: {config key: int}, numbers of layers. Each layer has several
            tensors.
    """

    shapes: list[Any]
    layers: dict[Any, Any]


def check_sizes(sizes: Sizes, file: "Checkpoint") -> None:
    """Checks the sizes of a config against the headers of the files.

    Weights of absurd sizes are then refused before they are created.

    Args:
        sizes: `Sizes`.
        file: `Checkpoint`.

    Raises:
        ValueError: a tensor is missing or has another shape, or there are more
            layers than tensors.
    """
    for key, count in sizes.layers.items():
        if count > len(file.names):
            raise ValueError(
                f"`{key}` in config.json must not exceed the number of "
                f"tensors, {len(file.names)}. Received: {count}"
            )
    for names, shape in sizes.shapes:
        found = [name for name in names if name in file.names]
        if not found:
            raise ValueError(
                f"{file.path.name} must hold a tensor `{names[0]}`. "
                f"Received: {some(sorted(file.names))}"
            )
        if file.shape(found[0]) != shape:
            raise ValueError(
                f"`{found[0]}` in {file.file_name(found[0])} must have shape "
                f"{shape}, as config.json says. "
                f"Received: {file.shape(found[0])}"
            )


def some(names: Any, count: int = 3) -> str:
    """Returns the first of many names and the number of the others, str."""
    if not names:
        return "none"
    rest = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(names[:count]) + rest
