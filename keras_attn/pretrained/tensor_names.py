"""Which weight of ours is which tensor of a file: one table, read both ways."""

from typing import NamedTuple

from keras_attn.pretrained.layouts import FLAT, SAME, Layout, linear


class TensorName(NamedTuple):
    """Says under which name, and how laid out, a file holds a weight.

    Args:
        ours: str. Path of the weight in our model.
        theirs: str. Name of the tensor in the file.
        layout: `Layout`.
        copies: tuple of str. Names under which older files hold the same
            tensor, once more or instead.
        part: pair of int (i, n). The weight is part i of n equal ones that the
            tensor holds side by side along its last axis; default (0, 1): it is
            the tensor.

    Examples:
        >>> from keras_attn.pretrained.tensor_names import norm
        >>> [name.theirs for name in norm("norm", "encoder.layer_norm")]
        ['encoder.layer_norm.weight', 'encoder.layer_norm.bias']
    """

    ours: str
    theirs: str
    layout: Layout
    copies: tuple = ()
    part: tuple = (0, 1)


def dense(ours, theirs, input_axes=1):
    """Returns the names of a dense layer that theirs keeps as `nn.Linear`.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
        input_axes: int. As in `linear`.
    """
    return [
        TensorName(f"{ours}/kernel", f"{theirs}.weight", linear(input_axes)),
        TensorName(f"{ours}/bias", f"{theirs}.bias", FLAT),
    ]


def attention(ours, theirs, query, key, value, output):
    """Returns the names of a multi-head attention.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
        query: str. Name of the projection of the queries below the module.
        key: str. Likewise, of the keys.
        value: str. Likewise, of the values.
        output: str. Likewise, of the heads.
    """
    return [
        *dense(f"{ours}/query", f"{theirs}.{query}"),
        *dense(f"{ours}/key", f"{theirs}.{key}"),
        *dense(f"{ours}/value", f"{theirs}.{value}"),
        *dense(f"{ours}/attention_output", f"{theirs}.{output}", 2),
    ]


def norm(ours, theirs):
    """Returns the names of a layer norm.

    Args:
        ours: str. Path of the layer.
        theirs: str. Name of the module.
    """
    return [
        TensorName(f"{ours}/gamma", f"{theirs}.weight", SAME),
        TensorName(f"{ours}/beta", f"{theirs}.bias", SAME),
    ]
