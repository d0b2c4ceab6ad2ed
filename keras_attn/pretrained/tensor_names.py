"""The mapping between our weights and the tensors of a file."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_attn.pretrained.layouts import FLAT, SAME, Layout, linear
from keras_attn.typing import Tensor


class Part(NamedTuple):
    """Part of a tensor that holds several weights, one after the other.

    Args:
        index: int. Which of the weights.
        sizes: tuple of int. Sizes of all of them along the axis.
        axis: int. The axis of the tensor that is divided.
        repeats: int. The tensor holds so many sequences of the parts: one per
            head, in GPT-NeoX. Default 1.

    Examples:
        >>> from keras_attn.pretrained.tensor_names import Part
        >>> part = Part(1, (2, 1), repeats=2)
        >>> part.take(np.array([0, 1, 10, 2, 3, 11])).tolist()
        [10, 11]
    """

    index: int
    sizes: tuple[int, ...]
    axis: int = 0
    repeats: int = 1

    def take(self, tensor: Tensor) -> Tensor:
        """Returns this part of a tensor."""
        rows = np.moveaxis(tensor, self.axis, 0)
        others = rows.shape[1:]
        rows = rows.reshape(self.repeats, sum(self.sizes), *others)
        start = sum(self.sizes[: self.index])
        rows = rows[:, start : start + self.sizes[self.index]]
        return np.moveaxis(rows.reshape(-1, *others), 0, self.axis)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Returns the tensor with all its parts, in order."""
        rows = [np.moveaxis(part, self.axis, 0) for part in parts]
        others = rows[0].shape[1:]
        joined = np.concatenate(
            [row.reshape(self.repeats, -1, *others) for row in rows], axis=1
        )
        return np.moveaxis(joined.reshape(-1, *others), 0, self.axis)

    def shape_of_tensor(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of the tensor, from that of this part."""
        shape = list(shape)
        shape[self.axis] = self.repeats * sum(self.sizes)
        return tuple(shape)


class TensorName(NamedTuple):
    """The name and layout of a weight in a file.

    Args:
        ours: str. Path of the weight in our model.
        theirs: str. Name of the tensor in the file.
        layout: `Layout`.
        copies: tuple of str. Names of the same tensor in other files, in
            addition to `theirs` or instead.
        part: `Part` of the tensor, in the layout of the file. Default None: the
            whole tensor.
        row: int. Index on the first axis of our weight, if it is a stack of
            tensors: one per expert, in Mixtral. Each of them has a
            `TensorName`. Default None: our weight is one tensor.

    Examples:
        >>> from keras_attn.pretrained.tensor_names import norm
        >>> [name.theirs for name in norm("norm", "encoder.layer_norm")]
        ['encoder.layer_norm.weight', 'encoder.layer_norm.bias']
    """

    ours: str
    theirs: str
    layout: Layout
    copies: tuple[Any, ...] = ()
    part: Part | None = None
    row: int | None = None


def dense(
    ours: str, theirs: str, input_axes: int = 1, use_bias: bool = True
) -> list[Any]:
    """Returns the names of a dense layer, in PyTorch an `nn.Linear`.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
        input_axes: int. As in `linear`.
        use_bias: bool. Whether the layer has a bias. Default True.
    """
    names = [
        TensorName(f"{ours}/kernel", f"{theirs}.weight", linear(input_axes)),
        TensorName(f"{ours}/bias", f"{theirs}.bias", FLAT),
    ]
    return names if use_bias else names[:1]


def attention(
    ours: str, theirs: str, query: str, key: str, value: str, output: str
) -> list[Any]:
    """Returns the names of a multi-head attention layer.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
        query: str. Name of the query projection in the module.
        key: str. Name of the key projection.
        value: str. Name of the value projection.
        output: str. Name of the output projection.
    """
    return [
        *dense(f"{ours}/query", f"{theirs}.{query}"),
        *dense(f"{ours}/key", f"{theirs}.{key}"),
        *dense(f"{ours}/value", f"{theirs}.{value}"),
        *dense(f"{ours}/attention_output", f"{theirs}.{output}", 2),
    ]


def norm(ours: str, theirs: str, use_bias: bool = True) -> list[Any]:
    """Returns the names of a layer norm.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
        use_bias: bool. Whether the norm adds an offset. Default True.
    """
    names = [
        TensorName(f"{ours}/gamma", f"{theirs}.weight", SAME),
        TensorName(f"{ours}/beta", f"{theirs}.bias", SAME),
    ]
    return names if use_bias else names[:1]
