"""Gradients with respect to the inputs and weights of a layer."""

import keras
from keras import ops

from tests.helpers.gradients import gradient


def layer_gradients(layer, function, *arrays):
    """Differentiates a scalar function of arrays and a layer's weights.

    Args:
        layer: built layer or model that the function calls.
        function: callable that takes one float tensor per array and returns a
            scalar tensor.
        *arrays: float arrays.

    Returns:
        List of the gradients with respect to the arrays, and a dict {name below
        the layer: gradient} for the trainable weights.
    """
    variables = layer.trainable_weights
    values = [keras.ops.convert_to_numpy(v) for v in variables]

    def of_everything(*tensors):
        weights = tensors[len(arrays) :]
        mapping = list(zip(variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*tensors[: len(arrays)])

    gradients = gradient(of_everything, *arrays, *values)
    names = [v.path.removeprefix(f"{layer.path}/") for v in variables]
    at_weights = zip(names, gradients[len(arrays) :], strict=True)
    return gradients[: len(arrays)], dict(at_weights)


def weighted_sum(tensor, weights):
    """Returns the scalar sum(tensor * weights), in float32."""
    weights = ops.convert_to_tensor(weights, dtype="float32")
    return ops.sum(ops.cast(tensor, "float32") * weights)
