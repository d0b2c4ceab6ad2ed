"""Position-wise feed-forward layer."""

from typing import TYPE_CHECKING, Any

import keras

from keras_attn import checks
from keras_attn.backend import apply_dense
from keras_attn.layers.position_wise_network import PositionWiseNetwork
from keras_attn.typing import Activation, Initializer, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class FeedForward(PositionWiseNetwork):
    """Applies the same two-layer network to every position.

        FFN(x) = f(x W_1 + b_1) W_2 + b_2

    (Vaswani et al. 2017, sec. 3.3, https://arxiv.org/abs/1706.03762); gated:

        FFN(x) = (f(x W_1 + b_1) * (x W_3 + b_3)) W_2 + b_2

    (Shazeer 2020, https://arxiv.org/abs/2002.05202). With a limit c, as in
    gpt-oss (OpenAI 2025, https://arxiv.org/abs/2508.10925):

        FFN(x) = (f(min(x W_1 + b_1, c)) * (clip(x W_3 + b_3, -c, c) + 1)) W_2
                 + b_2

    Args:
        intermediate_dim: int >= 1. Width of the hidden layer.
        activation: name or callable, f. Default `"relu"`.
        gated: bool. Use the gated form. Default False.
        gate_limit: float > 0. c of the gated form. Default None: no limit, and
            no added 1.
        dropout: float in [0, 1). Dropout probability of the hidden features.
            Default 0.0.
        use_bias: bool. Default True.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (..., D).
        training: bool. Whether to apply dropout.

    Returns:
        Float (..., D).

    Raises:
        ValueError: a width or a probability is out of range.

    Examples:
        >>> layer = keras_attn.layers.FeedForward(32, "gelu", gated=True)
        >>> tuple(layer(keras.ops.ones((2, 3, 8))).shape)
        (2, 3, 8)
    """

    _tensors = ("inputs",)

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation = "relu",
        gated: bool = False,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        gate_limit: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            intermediate_dim,
            activation,
            gated,
            dropout,
            use_bias,
            kernel_initializer,
            bias_initializer,
            gate_limit,
            **kwargs,
        )

    def call(self, inputs: TensorLike, training: bool | None = None) -> Tensor:
        """Applies the layer; the class docstring lists the arguments."""
        checks.width(
            "inputs", checks.floats("inputs", inputs).shape, self._width
        )
        return self._network(apply_dense, inputs, training)

    if TYPE_CHECKING:
        __call__ = call

    def _dense(self, name, fan_in, fan_out):
        dense = keras.layers.Dense(
            fan_out,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, fan_in))
        return dense
