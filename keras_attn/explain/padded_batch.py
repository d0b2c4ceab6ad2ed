"""A padded batch, its real positions, and modified copies of it."""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.explain.arguments import number_array
from keras_attn.typing import Nest, Tensor, TensorLike

# Integer inputs with one value per token that are not token ids.
_COMPANIONS = ("segment", "token_type", "position")
_MOST_LEVELS = 32
_MASK_SUFFIXES = ("padding_mask", "attention_mask", "mask")


@dataclasses.dataclass
class Leaf:
    """One array of a batch.

    Args:
        name: str, such as "inputs", "inputs[0]" or "token_ids".
        array: NumPy array.
        dtype: str. Dtype of the tensor that the model receives.
        implicit_mask: bool (B, T) array, the tensor's Keras mask, or None.
    """

    name: str
    array: np.ndarray
    dtype: str
    implicit_mask: np.ndarray | None = None

    def tensor(self) -> Any:
        """Returns a new tensor, with its implicit mask."""
        tensor = ops.convert_to_tensor(self.array, dtype=self.dtype)
        if self.implicit_mask is not None:
            # A fresh copy: a layer may delete a tensor's mask. The attribute is
            # private, but Keras exports no setter as of Keras 3.15.1.
            tensor._keras_mask = ops.convert_to_tensor(self.implicit_mask)
        return tensor


@dataclasses.dataclass
class Sequences:
    """Inputs that share their positions, such as ids and their mask.

    Args:
        name: str. Name of the first input.
        real: bool (B, T). True where there is a token.
        ids: list of int. Leaves whose padding is the pad id.
        contents: list of int. Leaves with arbitrary values at padded positions.
        masks: list of int. Leaves that are padding masks.
    """

    name: str
    real: np.ndarray
    ids: list[Any] = dataclasses.field(default_factory=list)
    contents: list[Any] = dataclasses.field(default_factory=list)
    masks: list[Any] = dataclasses.field(default_factory=list)

    @property
    def length(self) -> int:
        """T."""
        return self.real.shape[1]


class PaddedBatch:
    """The inputs of one call of a model.

    Args:
        inputs: nest (dict, list, tuple) of arrays or tensors.
        mask: bool (B, T), or a nest of them like `inputs`; None: taken from
            implicit masks, masks among the inputs, and `pad_id`.
        pad_id: int.

    Raises:
        ValueError: inputs that are not a batch of arrays, a mask that fits no
            input, or no padding.
    """

    def __init__(
        self, inputs: Nest, mask: TensorLike | None = None, pad_id: int = 0
    ) -> None:
        self.structure = inputs
        self.pad_id = pad_id
        self.leaves: list[Any] = []
        _check_depth("inputs", inputs)
        _check_depth("mask", mask)
        _visit(inputs, "inputs", lambda name, x: self._add(name, x))
        if len({len(leaf.array) for leaf in self.leaves}) != 1:
            raise ValueError(
                "`inputs` must be arrays with equal batch sizes. Received: "
                f"{[leaf.array.shape for leaf in self.leaves]}"
            )
        self._attach(mask)
        self.sequences: list[Any] = _sequences(self.leaves, pad_id)
        if all(sequence.real.all() for sequence in self.sequences):
            raise ValueError(
                "`inputs` must have padding in at least one row, or there is "
                "nothing to probe: give ids with the pad id, a mask among the "
                f"inputs, or `mask`. Received: pad_id={pad_id} and inputs of "
                f"shapes {[leaf.array.shape for leaf in self.leaves]}"
            )

    @property
    def rows(self) -> int:
        """B."""
        return len(self.leaves[0].array)

    @property
    def whole(self) -> Tensor:
        """Bool (B,): rows with a real position in every sequence."""
        return np.all([x.real.any(axis=1) for x in self.sequences], axis=0)

    def tensors(self) -> Any:
        """Returns the inputs for a call, as new tensors."""
        leaves = iter(self.leaves)
        return _visit(self.structure, "", lambda name, x: next(leaves).tensor())

    def lengthened(self, sequences: Sequences, count: int) -> "PaddedBatch":
        """Returns this batch with more padded positions on the right."""

        def more(leaf, value):
            axes = [
                (0, count if axis in grows else 0)
                for grows in [_growing(leaf, sequences.length)]
                for axis in range(leaf.array.ndim)
            ]
            array = np.pad(leaf.array, axes, constant_values=value)
            mask = leaf.implicit_mask
            if mask is not None:
                mask = np.pad(mask, ((0, 0), (0, count)))
            return dataclasses.replace(leaf, array=array, implicit_mask=mask)

        changed = {i: self.pad_id for i in sequences.ids}
        changed |= dict.fromkeys(sequences.contents + sequences.masks, 0)
        for index, leaf in enumerate(self.leaves):
            # Masks of pairs of positions, (B, T, T).
            if leaf.array.dtype == bool and leaf.array.ndim > 2:
                changed[index] = False
        return self._with(
            {i: more(self.leaves[i], changed[i]) for i in changed}
        )

    def other_contents(
        self, sequences: Sequences, random: Any
    ) -> "PaddedBatch":
        """Returns this batch with other contents at padded positions."""

        def other(leaf):
            array = leaf.array.copy()
            hidden = ~sequences.real
            if array.dtype.kind in "iu":
                known = array[sequences.real]
                array[hidden] = random.choice(known, hidden.sum())
            else:
                array[hidden] = noise_like(array, random)[hidden]
            return dataclasses.replace(leaf, array=array)

        return self._with(
            {i: other(self.leaves[i]) for i in sequences.contents}
        )

    def row(self, number: int) -> "PaddedBatch":
        """Returns the batch of one row."""

        def one(leaf):
            mask = leaf.implicit_mask
            return dataclasses.replace(
                leaf,
                array=leaf.array[number : number + 1],
                implicit_mask=None
                if mask is None
                else mask[number : number + 1],
            )

        return self._with({i: one(x) for i, x in enumerate(self.leaves)})

    def _with(self, leaves):
        other = object.__new__(PaddedBatch)
        vars(other).update(vars(self))
        other.leaves = [leaves.get(i, x) for i, x in enumerate(self.leaves)]
        return other

    def _add(self, name, x):
        if (
            not hasattr(x, "shape")
            or not hasattr(x, "dtype")
            or not len(x.shape)
        ):
            raise ValueError(
                "`inputs` must be an array or tensor of shape (batch, ...), or "
                "a dict, list or tuple of them. Received: "
                f"{name} of type {type(x).__name__}"
            )
        try:
            dtype = keras.backend.standardize_dtype(x.dtype)
        except ValueError as error:
            raise ValueError(
                f"`inputs` must be numbers. Received: {name} of dtype {x.dtype}"
            ) from error
        mask = getattr(x, "_keras_mask", None)
        if mask is not None:
            mask = ops.convert_to_numpy(mask).astype(bool)
        if "float" in dtype:
            x = ops.cast(x, "float32") if dtype == "bfloat16" else x
        array = ops.convert_to_numpy(x)
        if dtype == "int64":
            dtype = "int32"  # supported by every backend
            checks.int32("inputs", array)
        self.leaves.append(Leaf(name, array, dtype, mask))

    def _attach(self, mask):
        if mask is None:
            return
        masks = {}
        _visit(mask, "inputs", masks.__setitem__)
        leaves = {leaf.name: leaf for leaf in self.leaves}
        if list(masks) == ["inputs"]:
            # One mask for the only sequence.
            (array,) = masks.values()
            names = [x.name for x in self.leaves if _is_sequence(x.array)]
            masks = dict.fromkeys(names[:1], array)
        unknown = [name for name in masks if name not in leaves]
        if not masks or unknown:
            raise ValueError(
                "`mask` must be of shape (B, T), or a nest of these like "
                f"`inputs`. Received: {checks.shown(unknown or mask)}, and "
                f"inputs {checks.shown(list(leaves))}"
            )
        for name, array in masks.items():
            if array is None:
                continue
            array = number_array(
                "mask", array, "a bool array (B, T) or a nest of them"
            )
            if not np.isin(array, (0, 1)).all():
                raise ValueError(
                    "`mask` must be bool, True where there is a token. "
                    f"Received: {name} of dtype {array.dtype}"
                )
            array = array.astype(bool)
            leaf = leaves[name]
            if leaf.array.shape[:2] != array.shape:
                raise ValueError(
                    "`mask` must be of shape (B, T), or a nest of these like "
                    f"`inputs`. Received: a mask of shape {array.shape} for "
                    f"{name}, and inputs "
                    f"{ {x.name: x.array.shape for x in self.leaves} }"
                )
            leaf.implicit_mask = array


def noise_like(array: TensorLike, random: np.random.Generator) -> float:
    """Returns Gaussian noise with ten times the RMS of `array`.

    Args:
        array: float, any shape.
        random: `numpy.random.Generator`.

    Returns:
        Float in the shape and dtype of `array`.
    """
    size = float(np.sqrt(np.mean(np.square(array, dtype="float64")))) or 1.0
    return random.normal(scale=10 * size, size=array.shape).astype(array.dtype)


def _check_depth(name, nest, depth=0):
    """Raises ValueError if a nest has too many levels."""
    if depth > _MOST_LEVELS:
        raise ValueError(
            f"`{name}` must be an array or a nest of arrays. "
            f"Received: a nest of more than {_MOST_LEVELS} levels"
        )
    if isinstance(nest, (list, tuple, dict)):
        for item in nest.values() if isinstance(nest, dict) else nest:
            _check_depth(name, item, depth + 1)


def _visit(nest, name, function):
    """Maps a function over the leaves of a nest, with their names."""
    if isinstance(nest, dict):
        outer = "" if name in ("", "inputs") else f"{name}/"
        return {
            key: _visit(value, f"{outer}{key}", function)
            for key, value in nest.items()
        }
    if isinstance(nest, (list, tuple)):
        return type(nest)(
            [_visit(x, f"{name}[{i}]", function) for i, x in enumerate(nest)]
        )
    return function(name, nest)


def _is_sequence(array):
    """Whether an array is ids (B, T) or features (B, T, ...)."""
    if array.dtype.kind in "iu":
        return array.ndim == 2
    return array.dtype.kind == "f" and array.ndim > 2


def _is_mask(leaf):
    array = leaf.array
    return array.ndim == 2 and (
        array.dtype == bool
        or (leaf.name.endswith("mask") and np.isin(array, (0, 1)).all())
    )


def _growing(leaf, length):
    """Returns the position axes of an array."""
    if leaf.array.dtype == bool and leaf.array.ndim > 2:
        return [
            a
            for a in range(1, leaf.array.ndim)
            if leaf.array.shape[a] == length
        ]
    return [1]


def _sequences(leaves, pad_id):
    """Groups the leaves that share their positions."""
    masks = [i for i, leaf in enumerate(leaves) if _is_mask(leaf)]
    companions, found = [], []
    for index, leaf in enumerate(leaves):
        if index in masks or not _is_sequence(leaf.array):
            continue
        ids = leaf.array.dtype.kind in "iu"
        if ids and any(word in leaf.name for word in _COMPANIONS):
            companions.append(index)
            continue
        mask = _mask_of(index, leaves, masks)
        if leaf.implicit_mask is not None:
            real, kind = leaf.implicit_mask, "contents"
        elif mask is not None:
            real, kind = leaves[mask].array.astype(bool), "contents"
        elif ids:
            real, kind = leaf.array != pad_id, "ids"
        else:
            continue
        group = _group(found, real) or Sequences(leaf.name, real)
        if group not in found:
            found.append(group)
        getattr(group, kind).append(index)
        if mask is not None and mask not in group.masks:
            group.masks.append(mask)
    for index in companions:
        leaf = leaves[index]
        like = [x for x in found if x.real.shape == leaf.array.shape]
        if like:
            group = max(like, key=lambda x: _common(x.name, leaf.name))
            group.contents.append(index)
    return found


def _group(found, real):
    for group in found:
        if group.real.shape == real.shape and (group.real == real).all():
            return group
    return None


def _common(first, second):
    """Returns the length of the common prefix of two names."""
    same = [a == b for a, b in zip(first, second, strict=False)]
    return [*same, False].index(False)


def _mask_of(index, leaves, masks):
    """Returns the index of the leaf that is another's mask, or None."""
    leaf = leaves[index]
    fitting = [
        i for i in masks if leaves[i].array.shape == leaf.array.shape[:2]
    ]
    for i in fitting:
        stem = leaves[i].name
        if stem.startswith("inputs["):
            # No names: a mask follows the input that it masks.
            before = [
                j
                for j in range(i)
                if j not in masks
                and _is_sequence(leaves[j].array)
                and leaves[j].array.shape[:2] == leaves[i].array.shape
            ]
            if before[-1:] == [index]:
                return i
            continue
        for suffix in _MASK_SUFFIXES:
            if stem.endswith(suffix):
                stem = stem.removesuffix(suffix).rstrip("_")
                break
        if leaf.name.startswith(stem):
            return i
    return None
