"""Residual connection with dropout and layer norm."""

from typing import Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import TorchNames, add_and_norm
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.normalization import check_normalization, make_norm
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class Residual(TorchNames, keras.layers.Layer):
    """Residual connection, dropout and layer norm around a sublayer.

        y = LayerNorm(x + Dropout(f(x)))

    Post-norm, as in the paper (Vaswani et al. 2017, sec. 3.1 and 5.4,
    https://arxiv.org/abs/1706.03762).

        y = x + Dropout(f(LayerNorm(x)))

    Pre-norm (Xiong et al. 2020, https://arxiv.org/abs/2002.04745).

        y = x + Dropout(Norm(f(x)))               OLMo 2
        y = x + Dropout(Norm(f(Norm(x))))         Gemma 2

    With `normalize_output`, without and with pre-norm (OLMo team 2024,
    https://arxiv.org/abs/2501.00656; Gemma team 2024,
    https://arxiv.org/abs/2408.00118).

    The sublayer itself belongs to the block: call `pre` on x, the sublayer on
    the result, and `post` on x and the sublayer's output.

    Args:
        dropout: float in [0, 1). Probability that a feature is dropped.
        normalize_first: bool. Pre-norm. Default False.
        epsilon: float. Added to the variance in the norms.
        normalization: `"layer_norm"`, `"bias_free_layer_norm"` or
            `"rms_norm"`. Default `"layer_norm"`.
        normalize_output: bool. Normalize the sublayer's output instead of the
            sum. Default False.
        normalize_input: bool. False: pre-norm without the norm of x, as before
            the first attention of ModernBERT; requires `normalize_first`.
            Default True.
        layer_scale: float > 0. Initial value of a learned factor per feature of
            the sublayer's output (Touvron et al. 2021,
            https://arxiv.org/abs/2103.17239). Default None: no factor.
        stochastic_depth: float in [0, 1). Probability p that a row drops the
            sublayer's output in training; others are divided by 1 - p (Huang
            et al. 2016, https://arxiv.org/abs/1603.09382). Default 0.0.
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
        normalization: str = "layer_norm",
        normalize_output: bool = False,
        normalize_input: bool = True,
        layer_scale: float | None = None,
        stochastic_depth: float = 0.0,
        **kwargs: Any,
    ) -> None:
        checks.fraction("dropout", dropout)
        checks.boolean("normalize_first", normalize_first)
        checks.positive("epsilon", epsilon)
        check_normalization(normalization)
        checks.boolean("normalize_output", normalize_output)
        checks.boolean("normalize_input", normalize_input)
        if not (normalize_input or normalize_first):
            raise ValueError(
                "`normalize_input=False` requires `normalize_first`. "
                "Received: normalize_first=False"
            )
        if layer_scale is not None:
            checks.positive("layer_scale", layer_scale)
        checks.fraction("stochastic_depth", stochastic_depth)
        super().__init__(**kwargs)
        self.dropout = dropout
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self.normalization = normalization
        self.normalize_output = normalize_output
        self.normalize_input = normalize_input
        self.layer_scale = layer_scale
        self.stochastic_depth = stochastic_depth
        self._norm = self._output_norm = None
        if normalize_input and (normalize_first or not normalize_output):
            self._norm = self._make_norm("norm")
        if normalize_output:
            self._output_norm = self._make_norm("output_norm")
        self._dropout_layer = Dropout(dropout, dtype=self.dtype_policy)
        self._row_dropout = self._scale = None
        if stochastic_depth:
            self._row_dropout = Dropout(
                stochastic_depth, dtype=self.dtype_policy
            )

    def build(self, inputs_shape: Shape) -> None:
        """Creates the weights of the norms."""
        self._width = inputs_shape[-1]
        for norm in (self._norm, self._output_norm):
            if norm is not None:
                norm.build(inputs_shape)
        if self.layer_scale is not None:
            self._scale = self.add_weight(
                name="layer_scale",
                shape=(self._width,),
                initializer=keras.initializers.Constant(self.layer_scale),
            )
        self.built = True

    def pre(self, x: TensorLike) -> Tensor:
        """Returns the input of the sublayer."""
        self._check("x", x)
        reads_norm = self.normalize_first and self.normalize_input
        return self._norm(x) if reads_norm else x

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
        if self._output_norm is not None:
            output = self._output_norm(output)
        if self._scale is not None or (self._row_dropout and training):
            if dropout is not None:
                output, dropout = dropout(output, training=True), None
            output = self._scaled(output, training)
        if (
            self._output_norm is None
            and not self.normalize_first
            and self.normalization == "layer_norm"
        ):
            return add_and_norm(x, output, self._norm, dropout)
        if dropout is not None:
            output = dropout(output, training=True)
        if self.normalize_first or self.normalize_output:
            return x + output
        return self._norm(x + output)

    def _scaled(self, output, training):
        """Applies layer scale and stochastic depth."""
        if self._scale is not None:
            # Cast explicitly: only `__call__` autocasts weights
            # (as of Keras 3.15.1).
            output = output * ops.cast(self._scale, output.dtype)
        if self._row_dropout and training:
            rows = (ops.shape(output)[0], *[1] * (len(output.shape) - 1))
            kept = ops.ones(rows, dtype=output.dtype)
            output = output * self._row_dropout(kept, training=True)
        return output

    def _make_norm(self, name):
        return make_norm(
            self.normalization,
            self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

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
            normalization=self.normalization,
            normalize_output=self.normalize_output,
            normalize_input=self.normalize_input,
            layer_scale=self.layer_scale,
            stochastic_depth=self.stochastic_depth,
        )
        return config
