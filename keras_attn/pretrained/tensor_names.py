"""The mapping between our weights and the tensors of a file."""

from typing import Any, NamedTuple

from keras_attn.pretrained.layouts import FLAT, SAME, Layout, linear


class TensorName(NamedTuple):
    """The name and layout of a weight in a file.

    Args:
        ours: str. Path of the weight in our model.
        theirs: str. Name of the tensor in the file.
        layout: `Layout`.
        copies: tuple of str. Names of the same tensor in other files, in
            addition to `theirs` or instead.
        part: pair of int (i, n). The weight is part i of n equal parts of the
            tensor along its last axis. Default (0, 1): the whole tensor.

    Examples:
        >>> from keras_attn.pretrained.tensor_names import norm
        >>> [name.theirs for name in norm("norm", "encoder.layer_norm")]
        ['encoder.layer_norm.weight', 'encoder.layer_norm.bias']
    """

    ours: str
    theirs: str
    layout: Layout
    copies: tuple[Any, ...] = ()
    part: tuple[Any, ...] = (0, 1)


def dense(ours: str, theirs: str, input_axes: int = 1) -> list[Any]:
    """Returns the names of a dense layer, in PyTorch an `nn.Linear`.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
        input_axes: int. As in `linear`.
    """
    return [
        TensorName(f"{ours}/kernel", f"{theirs}.weight", linear(input_axes)),
        TensorName(f"{ours}/bias", f"{theirs}.bias", FLAT),
    ]


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


def norm(ours: str, theirs: str) -> list[Any]:
    """Returns the names of a layer norm.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
    """
    return [
        TensorName(f"{ours}/gamma", f"{theirs}.weight", SAME),
        TensorName(f"{ours}/beta", f"{theirs}.bias", SAME),
    ]
