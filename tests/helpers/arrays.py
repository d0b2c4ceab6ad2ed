"""Tensors and weights of the current backend, as NumPy arrays."""

import keras


def to_numpy(tensor):
    """Returns a tensor as a NumPy array."""
    return keras.ops.convert_to_numpy(tensor)


def named_arrays(layer):
    """Returns the weights of a layer as {name below the layer: array}."""
    return {
        variable.path.removeprefix(f"{layer.path}/"): to_numpy(variable)
        for variable in layer.weights
    }
