"""Reads and sets implicit masks of tensors without attributes.

JAX tracers have no `__dict__` (as of JAX 0.10.2). Keras then keeps the mask in
a private table that only its layers access (as of Keras 3.15.1), so these
helpers are layers.
"""

import keras

from keras_attn.typing import Tensor, TensorLike


class _MaskReader(keras.layers.Layer):
    """Reads the implicit mask, which Keras passes as the argument `mask`."""

    def __init__(self, report):
        super().__init__(autocast=False, name="mask")
        self.supports_masking = True
        self._report = report

    def call(self, inputs, mask=None):
        self._report(mask)
        return inputs

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`, since there is nothing to recompute."""
        return layer_call


class _MaskSetter(keras.layers.Layer):
    """Sets the implicit mask, which Keras takes from `compute_mask`."""

    def __init__(self, mask):
        super().__init__(autocast=False, name="mask")
        self._mask = [mask]

    def call(self, inputs):
        return inputs

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`, since there is nothing to recompute."""
        return layer_call

    def compute_mask(self, inputs, previous_mask=None):
        return self._mask[0]


def carries(tensor: TensorLike) -> bool:
    """Returns whether attributes can be set on a tensor."""
    return hasattr(tensor, "__dict__")


def asked_mask(tensor: TensorLike) -> Tensor | None:
    """Returns the implicit mask that Keras keeps for a tensor, or None."""
    found = []
    _MaskReader(found.append)(tensor)
    return found[0]


def with_mask(tensor: TensorLike, mask: TensorLike) -> Tensor:
    """Returns the tensor with an implicit mask set."""
    return _MaskSetter(mask)(tensor)
