"""Recurrent layer that reads a sequence in both directions."""

from typing import Any

import keras
from keras import ops

from keras_attn.typing import Nest, Tensor, TensorLike


class Bidirectional(keras.layers.Layer):
    """Two recurrent layers: one reads forward, the other one backward.

    Computes what `keras.layers.Bidirectional` computes for layers that return
    sequences and states, and has weights of the same names. That layer copies
    its layer through its config, and while Keras loads a model, it recognizes
    shared objects by their `id()`. The id of a freed object can return, and
    loading then fails now and then (as of Keras 3.15.1). This one copies
    nothing.

    Args:
        recurrent_layer: class of the layers, such as `keras.layers.LSTM`.
        units: int. Units in each direction.
        name: str. Name of this layer.
        dtype: dtype or dtype policy.
    """

    def __init__(
        self,
        recurrent_layer: Any,
        units: int,
        *,
        name: str,
        dtype: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.supports_masking = True
        self.forward_layer: Any
        self.backward_layer: Any
        self.forward_layer, self.backward_layer = (
            recurrent_layer(
                units,
                return_sequences=True,
                return_state=True,
                zero_output_for_mask=True,
                go_backwards=go_backwards,
                dtype=self.dtype_policy,
                name=f"{direction}_{name}",
            )
            for direction, go_backwards in [
                ("forward", False),
                ("backward", True),
            ]
        )

    def build(self, input_shape: Nest) -> None:
        """Creates the weights for inputs of shape (B, S, D)."""
        self.forward_layer.build(input_shape)
        self.backward_layer.build(input_shape)
        self.built = True

    def call(
        self,
        x: TensorLike,
        mask: TensorLike | None = None,
        training: bool | None = False,
    ) -> Tensor:
        """Reads a batch of sequences.

        Args:
            x: float (B, S, D).
            mask: bool (B, S), False at padding. Default: no padding.
            training: bool. Passed to both layers.

        Returns:
            tuple: the outputs, float (B, S, 2 * units), 0 at padding, then the
            final states of the forward layer, float (B, units) each, then those
            of the backward layer.
        """
        arguments = {"mask": mask, "training": training}
        forward, *forward_states = self.forward_layer(x, **arguments)
        backward, *backward_states = self.backward_layer(x, **arguments)
        both = ops.concatenate([forward, ops.flip(backward, axis=1)], axis=-1)
        return both, *forward_states, *backward_states
