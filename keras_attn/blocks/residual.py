"""Residual connection with dropout and layer norm."""

from typing import Any

import keras

from keras_attn import checks
from keras_attn.backend import TorchNames, add_and_norm
from keras_attn.layers.dropout import Dropout
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class Residual(TorchNames, keras.layers.Layer):
    """Residual connection, dropout and layer norm around a sublayer.

        y = LayerNorm(x + Dropout(f(x)))

    Post-norm, as in the paper (Vaswani et al. 2017, sec. 3.1 and 5.4,
    https://arxiv.org/abs/1706.03762).

        y = x + Dropout(f(LayerNorm(x)))

    Pre-norm (Xiong et al. 2020, https://arxiv.org/abs/2002.04745).

    The sublayer itself belongs to the block: call `pre` on x, the sublayer on
    the result, and `post` on x and the sublayer's output.

    Args:
        dropout: float in [0, 1). Probability that a feature is dropped.
        normalize_first: bool. Pre-norm. Default False.
        epsilon: float. Added to the variance in the layer norm.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Examples:
        >>> residual = keras_attn.blocks.Residual()
        >>> x = keras.random.normal((2, 3, 8), seed=0)
        >>> residual.build(x.shape)
        >>> tuple(residual.post(x, 2 * residual.pre(x)).shape)
        (2, 3, 8)
    """

    def __init__(
        self,
        dropout: float = 0.0,
        normalize_first: bool = False,
        epsilon: float = 1e-5,
        **kwargs: Any,
    ) -> None:
        checks.fraction("dropout", dropout)
        checks.boolean("normalize_first", normalize_first)
        checks.positive("epsilon", epsilon)
        super().__init__(**kwargs)
        self.dropout = dropout
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self._norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.dtype_policy, name="norm"
        )
        self._dropout_layer = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, inputs_shape: Shape) -> None:
        """Creates the layer norm."""
        self._width = inputs_shape[-1]
        self._norm.build(inputs_shape)
        self.built = True

    def pre(self, x: TensorLike) -> Tensor:
        """Returns the input of the sublayer."""
        self._check("x", x)
        return self._norm(x) if self.normalize_first else x

    def post(
        self, x: TensorLike, output: TensorLike, training: bool | None = None
    ) -> Tensor:
        """Adds the sublayer's output to x, with dropout and post-norm."""
        self._check("x", x)
        self._check("output", output)
        if not checks.fits(output.shape, x.shape):
            raise ValueError(
                "`x` and `output` must have the same shape. "
                f"Received: {tuple(x.shape)} and {tuple(output.shape)}"
            )
        dropout = self._dropout_layer if self.dropout and training else None
        if not self.normalize_first:
            return add_and_norm(x, output, self._norm, dropout)
        if dropout is not None:
            output = dropout(output, training=True)
        return x + output

    def _check(self, name, tensor):
        checks.floats(name, checks.tensor(name, tensor))
        if self.built:
            checks.width(name, tensor.shape, self._width)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        config.update(
            dropout=self.dropout,
            normalize_first=self.normalize_first,
            epsilon=self.epsilon,
        )
        return config
