"""Reading and setting implicit masks where a tensor cannot carry them itself.

What JAX differentiates has no room for attributes. Keras then keeps the mask in
a table of its own, which only its layers can reach: so layers are asked.
"""

import keras


class _Asked(keras.layers.Layer):
    """Keras hands the implicit mask of the inputs to an argument `mask`."""

    def __init__(self, tell):
        super().__init__(autocast=False, name="mask")
        self.supports_masking = True
        self._tell = tell

    def call(self, inputs, mask=None):
        self._tell(mask)
        return inputs

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`: there is nothing to compute twice."""
        return layer_call


class _Carrier(keras.layers.Layer):
    """Keras attaches what `compute_mask` says to the output."""

    def __init__(self, mask):
        super().__init__(autocast=False, name="mask")
        self._mask = [mask]

    def call(self, inputs):
        return inputs

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`: there is nothing to compute twice."""
        return layer_call

    def compute_mask(self, inputs, previous_mask=None):
        return self._mask[0]


def carries(tensor):
    """Says whether a tensor has room for an attribute."""
    return hasattr(tensor, "__dict__")


def asked_mask(tensor):
    """Returns the implicit mask that Keras keeps of a tensor, or None."""
    found = []
    _Asked(found.append)(tensor)
    return found[0]


def with_mask(tensor, mask):
    """Returns a tensor of the same values that has an implicit mask."""
    return _Carrier(mask)(tensor)
