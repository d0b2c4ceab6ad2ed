"""Dense layers of several experts."""

from typing import Any

import keras
from keras import ops

from keras_attn.backend import TorchNames, gather_rows
from keras_attn.layers.quantized_kernel import QuantizedKernel
from keras_attn.typing import Initializer, Shape, Tensor, TensorLike


class ExpertDense(QuantizedKernel, TorchNames, keras.layers.Layer):
    """A dense layer for each expert of a `MixtureOfExperts`.

        y_j = x_j W_e(j) + b_e(j)

    The kernels are one weight (E, D, F), the biases one weight (E, F). The
    arguments are those that `MixtureOfExperts` has checked.

    Args:
        num_experts: int >= 1. E.
        units: int >= 1. F.
        use_bias: bool.
        kernel_initializer: initializer of the kernel of each expert.
        bias_initializer: initializer.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Examples:
        >>> from keras_attn.layers.expert_dense import ExpertDense
        >>> layer = ExpertDense(3, 5, True, "glorot_uniform", "zeros")
        >>> layer.build((None, 4))
        >>> x = keras.ops.ones((2, 6, 4))
        >>> tuple(layer(x, keras.ops.array([2, 0])).shape)
        (2, 6, 5)
    """

    _input_axis = 1

    def __init__(
        self,
        num_experts: int,
        units: int,
        use_bias: bool,
        kernel_initializer: Initializer,
        bias_initializer: Initializer,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_experts = num_experts
        self.units = units
        self.use_bias = use_bias
        self.kernel_initializer: Initializer = keras.initializers.get(
            kernel_initializer
        )
        self.bias_initializer: Initializer = keras.initializers.get(
            bias_initializer
        )

    def build(self, inputs_shape: Shape) -> None:
        """Creates the kernels and the biases."""
        # Autocast would copy the kernels of all experts, not of the chosen.
        self.kernel: keras.Variable = self.add_weight(
            name="kernel",
            shape=(self.num_experts, inputs_shape[-1], self.units),
            initializer=_of_each(self.num_experts, self.kernel_initializer),
            autocast=False,
        )
        self.bias: keras.Variable | None = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(self.num_experts, self.units),
                initializer=self.bias_initializer,
                autocast=False,
            )

    def call(
        self, inputs: TensorLike, experts: TensorLike | None = None
    ) -> Tensor:
        """Applies the layers.

        Args:
            inputs: float (J, M, D).
            experts: int32 (J,), in [0, E). Default None: all experts, for J = E
                or J = 1.

        Returns:
            Float (J, M, F), or (E, M, F).
        """
        outputs = ops.matmul(inputs, self._float_kernel(inputs.dtype, experts))
        if self.bias is None:
            return outputs
        bias = ops.convert_to_tensor(self.bias)
        if experts is not None:
            bias = gather_rows(bias, experts)
        return outputs + ops.cast(bias[:, None], outputs.dtype)


def _of_each(num_experts, initializer):
    """Returns an initializer whose scale is that of one expert's kernel."""
    if not isinstance(initializer, keras.initializers.VarianceScaling):
        return initializer
    # Keras counts the first axis as inputs and as outputs.
    return keras.initializers.VarianceScaling(
        initializer.scale * num_experts,
        initializer.mode,
        initializer.distribution,
        initializer.get_config()["seed"],
    )
