"""Dropout with fewer random bits."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

from keras_attn import backend, checks
from keras_attn.backend import TorchNames
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.layers.dropout_seed import (
    DropoutSeeds,
    dropout_depth,
)
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class Dropout(CheckedCall, TorchNames, keras.layers.Dropout):
    """Dropout layer that draws fewer random bits than Keras's.

    y = x m / (1 - p), m = 0 with probability p and 1 otherwise
    (Srivastava et al. 2014, https://jmlr.org/papers/v15/srivastava14a.html).
    On a CPU, random numbers for Keras's layer take a quarter of a Transformer's
    training step. This layer draws 16 bits per element, rounds p to a multiple
    of 2^-16 and uses the rounded p in the scale too.

    Args:
        rate: float in [0, 1]. p.
        noise_shape: shape of a mask that is shared along some axes, in which
            case Keras's implementation is used. Default None: not shared.
        seed: int. Default None: drawn from the global seed.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float, any shape.
        training: bool. Whether to apply dropout.

    Returns:
        Float, same shape as `inputs`.

    Raises:
        ValueError: `rate` is outside [0, 1].

    Examples:
        >>> layer = keras_attn.layers.Dropout(0.5, seed=0)
        >>> y = layer(keras.ops.ones((4, 100)), training=True)
        >>> sorted(set(keras.ops.convert_to_numpy(y).ravel().tolist()))
        [0.0, 2.0]
    """

    _tensors = ("inputs",)

    def __init__(
        self,
        rate: float,
        noise_shape: Shape | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        checks.between("rate", rate, 0, 1)
        checks.seed("seed", seed)
        super().__init__(rate, noise_shape, seed, **kwargs)
        if self.rate > 0:
            # Keras has built the layer and accepts no new generator
            # (as of Keras 3.15.1).
            self.seed_generator.__class__ = DropoutSeeds

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        """Returns `layer_call`: the mask must not be drawn again.

        (`keras.remat` would draw it again, as of Keras 3.15.1.)
        """
        return layer_call

    def call(self, inputs: TensorLike, training: bool | None = False) -> Tensor:
        """Applies the layer; the class docstring lists the arguments."""
        if (
            not training
            or not 0 < self.rate < 1
            or self.noise_shape is not None
        ):
            return super().call(inputs, training=training)
        return backend.seeded_dropout(inputs, self.rate, self.draw())

    if TYPE_CHECKING:
        __call__ = call

    def draw(self) -> Any:
        """Draws a seed, or None to use PyTorch's own generator."""
        seeded = self.seed is not None or dropout_depth() > 0
        return backend.drawn_seed(self.seed_generator, seeded)
