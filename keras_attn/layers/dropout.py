"""Dropout at a fraction of the cost."""

import keras

from keras_attn import backend
from keras_attn.layers.dropout_seed import (
    DropoutSeeds,
    dropout_depth,
)


@keras.saving.register_keras_serializable(package="keras_attn")
class Dropout(keras.layers.Dropout):
    """Does what `keras.layers.Dropout` does, with fewer random bits.

    y = x m / (1 - p), m = 0 with probability p and 1 otherwise
    (Srivastava et al. 2014, https://jmlr.org/papers/v15/srivastava14a.html).
    The random numbers of Keras's layer are a quarter of a Transformer's
    training step on a CPU. This one draws 16 bits an element and rounds p to a
    multiple of 2^-16, and scales by the rounded one.

    Args:
        rate: float in [0, 1]. p.
        noise_shape: shape of the mask, where it is shared along axes; such a
            layer is Keras's own. Default None: an element each.
        seed: int. Default None: drawn from the global seed.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float, any shape.
        training: bool. Whether anything is dropped.

    Returns:
        Float in the shape of `inputs`.

    Raises:
        ValueError: `rate` outside [0, 1].

    Examples:
        >>> layer = keras_attn.layers.Dropout(0.5, seed=0)
        >>> y = layer(keras.ops.ones((4, 100)), training=True)
        >>> sorted(set(keras.ops.convert_to_numpy(y).ravel().tolist()))
        [0.0, 2.0]
    """

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(rate, noise_shape, seed, **kwargs)
        if self.rate > 0:
            # Keras's layer is closed for another one by now.
            self.seed_generator.__class__ = DropoutSeeds

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`: what is dropped must not be drawn twice."""
        return layer_call

    def call(self, inputs, training=False):
        """Applies the layer; the class docstring lists the arguments."""
        if (
            not training
            or not 0 < self.rate < 1
            or self.noise_shape is not None
        ):
            return super().call(inputs, training=training)
        return backend.seeded_dropout(inputs, self.rate, self.draw())

    def draw(self):
        """Draws a seed; None where PyTorch's own generator is to be asked."""
        seeded = self.seed is not None or dropout_depth() > 0
        return backend.drawn_seed(self.seed_generator, seeded)
