"""A model that also says where it looked."""

import keras

from keras_attn.ops import capture_weights


class WithWeights(keras.Model):
    """Returns what a model returns, and the weights of its one attention.

    As one program: the scope that collects the weights is opened inside of
    what is compiled.

    Args:
        model: `keras.Model` with one attention of one head, or with none.

    Call arguments:
        inputs: as for the model.

    Returns:
        Tuple of the model's output and float (B, T, S); the output alone where
        there is no attention.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs):
        """Applies the model."""
        with capture_weights() as captured:
            output = self.model(inputs)
        if not captured:
            return output
        (weights,) = captured.values()
        return output, weights[:, 0]
