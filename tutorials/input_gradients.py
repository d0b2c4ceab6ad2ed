"""Gradients of one output at all inputs, on any backend.

Keras has no function for gradients. But one step of plain gradient descent
with a learning rate of 1 moves a weight by minus its gradient: a weight that
is added to the inputs, and is zero before the step, holds it afterwards.
"""

import keras
import numpy as np


class Offset(keras.layers.Layer):
    """Adds a weight to the inputs, of the same shape, zero at first.

    Call arguments:
        inputs: float (B, N, D), B and N known.

    Returns:
        Float (B, N, D).
    """

    def build(self, inputs_shape):
        """Creates the weight."""
        self.offset = self.add_weight(
            shape=inputs_shape, initializer="zeros", name="offset"
        )

    def call(self, inputs):
        """Adds it."""
        return inputs + self.offset


class Projection(keras.losses.Loss):
    """The sum of what is predicted times what is given."""

    def __init__(self):
        super().__init__(name="projection", reduction="sum")

    def call(self, y_true, y_pred):
        """Returns the sums over all axes but the first, (B,)."""
        return keras.ops.sum(y_true * y_pred, axis=(1, 2))


def input_gradients(layer, inputs, direction):
    """Differentiates one output of a layer with respect to all its inputs.

        gradient[b, s] = d (direction[b] . output[b, N - 1]) / d input[b, s]

    Args:
        layer: layer from (B, N, D) to (B, N, D'). Its weights stay as they
            are, and it is left untrainable.
        inputs: float (B, N, D).
        direction: float (B, D').

    Returns:
        Float32 (B, N, D).

    Raises:
        ValueError: `inputs` are not of rank 3, or `direction` does not have a
            row for each of them.
    """
    inputs, direction = (np.asarray(x, "float32") for x in (inputs, direction))
    if inputs.ndim != 3 or direction.shape[:-1] != inputs.shape[:1]:
        raise ValueError(
            "`inputs` must be of shape (B, N, D) and `direction` of (B, D'). "
            f"Received: {inputs.shape} and {direction.shape}"
        )
    layer.trainable = False
    offset = Offset()
    source = keras.Input(batch_shape=inputs.shape)
    model = keras.Model(source, layer(offset(source)))
    model.compile(keras.optimizers.SGD(1.0), Projection())
    # Nothing is asked of the outputs but the last.
    asked = np.zeros((*inputs.shape[:2], direction.shape[-1]), "float32")
    asked[:, -1] = direction
    model.train_on_batch(inputs, asked)
    return -keras.ops.convert_to_numpy(offset.offset)
