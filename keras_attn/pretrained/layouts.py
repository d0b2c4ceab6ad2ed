"""How a weight of ours lies in a file, and back."""

import math
from typing import Any, NamedTuple


class Layout(NamedTuple):
    """Turns an array of ours into one of a file, and back.

    Args:
        to_file: function of our array that returns the file's.
        from_file: function of the file's array and of the shape of ours that
            returns ours.

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


# Tables of embeddings, gains and offsets of layer norms.
SAME = Layout(lambda array: array, _reshaped)
# Biases, which here may be split into heads.
FLAT = Layout(lambda array: array.reshape(-1), _reshaped)
# A vector that is kept as a matrix of one row.
ROW = Layout(lambda array: array.reshape(1, -1), _reshaped)


# A vector that is kept as the one row of one sequence.
ONE = Layout(lambda array: array.reshape(1, 1, -1), _reshaped)
# The kernel behind the heads, with its outputs in front.
HEADS_LAST = Layout(
    lambda array: array.transpose(2, 0, 1),
    lambda array, shape: array.transpose(1, 2, 0).reshape(shape),
)


def conv1d(input_axes=1):
    """Returns the layout of a kernel of their `Conv1D`: (inputs, outputs).

    Args:
        input_axes: int. As in `linear`.
    """

    def to_file(array):
        return array.reshape(math.prod(array.shape[:input_axes]), -1)

    return Layout(to_file, _reshaped)


def linear(input_axes=1):
    """Returns the layout of a kernel of `torch.nn.Linear`: (outputs, inputs).

    Args:
        input_axes: int. How many axes of our kernel, from the front, are
            inputs: 2 where heads are put together, else 1.
    """

    def to_file(array):
        inputs = math.prod(array.shape[:input_axes])
        return array.reshape(inputs, -1).T

    return Layout(to_file, lambda array, shape: array.T.reshape(shape))
