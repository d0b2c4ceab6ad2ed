"""Memory layouts of weights in files."""

import math
from typing import Any, NamedTuple

import numpy as np


class Layout(NamedTuple):
    """Conversion of an array between our layout and that of a file.

    Args:
        to_file: function of our array that returns the array of the file.
        from_file: function of the array of the file and of our shape that
            returns our array.

    Examples:
        >>> from keras_attn.pretrained.layouts import linear
        >>> kernel = np.zeros((16, 4, 2))  # D inputs, N heads of width H
        >>> linear().to_file(kernel).shape
        (8, 16)
    """

    to_file: Any
    from_file: Any


def _reshaped(array, shape):
    return array.reshape(shape)


# Embedding tables; gamma and beta of layer norms.
SAME = Layout(lambda array: array, _reshaped)
# Biases, which may be split into heads in our layers.
FLAT = Layout(lambda array: array.reshape(-1), _reshaped)
# Vectors saved as (1, size).
ROW = Layout(lambda array: array.reshape(1, -1), _reshaped)


# Vectors saved as (1, 1, size).
ONE = Layout(lambda array: array.reshape(1, 1, -1), _reshaped)
# The kernel of the output projection, with its outputs first.
HEADS_LAST = Layout(
    lambda array: array.transpose(2, 0, 1),
    lambda array, shape: array.transpose(1, 2, 0).reshape(shape),
)


def conv1d(input_axes: int = 1) -> Layout:
    """Returns the layout of a `Conv1D` kernel: (inputs, outputs).

    Args:
        input_axes: int. As in `linear`.
    """

    def to_file(array):
        return array.reshape(math.prod(array.shape[:input_axes]), -1)

    return Layout(to_file, _reshaped)


def linear(input_axes: int = 1) -> Layout:
    """Returns the layout of a `torch.nn.Linear` kernel: (outputs, inputs).

    Args:
        input_axes: int. Number of leading axes of our kernel that are inputs:
            2 for output projections of attention, else 1.
    """

    def to_file(array):
        inputs = math.prod(array.shape[:input_axes])
        return array.reshape(inputs, -1).T

    return Layout(to_file, lambda array, shape: array.T.reshape(shape))


def minus_one() -> Layout:
    """Returns the layout of scales that are stored minus 1, as in Gemma."""
    return Layout(
        lambda array: array.reshape(-1) - np.ones((), array.dtype),
        lambda array, shape: array.reshape(shape) + 1,
    )


def after_rows(count: int) -> Layout:
    """Returns the layout of a table after rows that no token uses.

    Args:
        count: int. Number of these rows, which are zeros in a new file.
    """
    return Layout(
        lambda table: np.pad(table, ((count, 0), (0, 0))),
        lambda table, shape: table[count:],
    )


def scaled(layout: Layout, factor: float) -> Layout:
    """Returns a layout for weights that are `factor` times those of a file.

    Args:
        layout: `Layout`.
        factor: float.
    """
    return Layout(
        lambda array: layout.to_file(array) / factor,
        lambda array, shape: (
            layout.from_file(array, shape) * np.float32(factor)
        ),
    )
