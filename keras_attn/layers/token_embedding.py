"""Token embedding with tied logits."""

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import TorchNames, pretransposed
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.layers.id_range import as_ids
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.typing import Initializer, Nest, Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class TokenEmbedding(
    QuantizedParts, CheckedCall, TorchNames, keras.layers.Layer
):
    """Token embedding scaled by sqrt(D), with tied logits.

        embed(x) = sqrt(D) E[x]
        logits(h) = h E^T + b

    with the same matrix E (Vaswani et al. 2017, sec. 3.4,
    https://arxiv.org/abs/1706.03762; Press and Wolf 2017,
    https://arxiv.org/abs/1608.05859). The bias b is optional.

    Args:
        vocabulary_size: int >= 1. V.
        hidden_dim: int >= 1. D.
        scale: bool. Multiply by sqrt(D). Default True.
        pad_id: int. The padding id, or None for no padding. Default 0.
        initializer: initializer of E. Default: normal with a standard deviation
            of 1 / sqrt(D), so that the scaled vectors have unit variance.
        logits_bias: bool. Whether the logits have a bias b. Default False, as
            in the paper.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        token_ids: int32 (B, T), in [0, V). As the first layer of a
            `keras.Sequential` without an `Input` it gets them as float32.

    Returns:
        Float (B, T, D), with an implicit Keras mask that is False at `pad_id`.

    Raises:
        ValueError: `token_ids` are not integers.

    Examples:
        >>> layer = keras_attn.layers.TokenEmbedding(10, 4)
        >>> y = layer(keras.ops.convert_to_tensor([[3, 0]]))
        >>> tuple(y.shape), tuple(layer.logits(y).shape)
        ((1, 2, 4), (1, 2, 10))
    """

    _tensors = ("token_ids",)

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        scale: bool = True,
        pad_id: int | None = 0,
        initializer: Initializer | None = None,
        logits_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.positive_int("hidden_dim", hidden_dim)
        if pad_id is not None:
            checks.token_id("pad_id", pad_id, -(2**31), 2**31 - 1)
        checks.boolean("scale", scale)
        checks.boolean("logits_bias", logits_bias)
        # Half precision would round ids that arrive as floats.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.scale = scale
        self.pad_id = pad_id
        self.logits_bias = logits_bias
        if initializer is None:
            initializer = keras.initializers.RandomNormal(
                stddev=hidden_dim**-0.5
            )
        self.initializer: Initializer = keras.initializers.get(initializer)

    def build(self, token_ids_shape: Shape | None = None) -> None:
        """Creates E and b."""
        self._table = keras.layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=self.initializer,
            # Otherwise the logits, the largest matmul, would be float32 in
            # mixed precision (as of Keras 3.15.1).
            reverse_dtype=self.compute_dtype,
            dtype=self.dtype_policy,
            name="table",
        )
        # The inputs of `logits` may have an implicit mask; Keras would warn
        # that it is lost (as of Keras 3.15.1).
        self._table.supports_masking = True
        self._table.build()
        self._bias = None
        if self.logits_bias:
            self._bias = self.add_weight(
                (self.vocabulary_size,), initializer="zeros", name="logits_bias"
            )

    def call(self, token_ids: TensorLike) -> Tensor:
        """Embeds token ids; the class docstring lists the arguments."""
        token_ids = as_ids("token_ids", token_ids, self.vocabulary_size)
        vectors = self._table(token_ids)
        if self.scale:
            vectors = vectors * ops.cast(self.hidden_dim**0.5, vectors.dtype)
        return vectors

    if TYPE_CHECKING:
        __call__ = call

    def output_matrix(self) -> Tensor:
        """Returns E^T for the logits of many steps.

        Returns:
            Float (D, V) in the compute dtype, or () if it does not speed up
            `logits` or the layer is quantized.
        """
        if self._table.quantization_mode is not None:
            return ()
        # The property, not the variable, because it includes LoRA weights.
        return pretransposed(
            ops.cast(self._table.embeddings, self.compute_dtype)
        )

    def logits(self, hidden: TensorLike, matrix: TensorLike = ()) -> Tensor:
        """Computes the logits of all tokens with the embedding matrix.

        Args:
            hidden: float (B, T, D).
            matrix: result of `output_matrix`. Default (): E is used directly.

        Returns:
            Float (B, T, V).

        Raises:
            ValueError: `hidden` has another width.
        """
        checks.floats("hidden", checks.tensor("hidden", hidden))
        checks.width("hidden", hidden.shape, self.hidden_dim)
        if not isinstance(matrix, tuple):
            logits = ops.matmul(ops.cast(hidden, matrix.dtype), matrix)
        elif self._table.quantization_mode is None:
            logits = self._table(hidden, reverse=True)
        else:
            logits = self._quantized_logits(hidden)
        if self._bias is not None:
            # Cast explicitly: only `__call__` autocasts weights
            # (as of Keras 3.15.1), and decode steps do not use it.
            logits = logits + ops.cast(self._bias, logits.dtype)
        return logits

    @property
    def is_quantized(self) -> bool:
        """Whether E is quantized."""
        return self._table.quantization_mode is not None

    def logits_weights(self) -> tuple[Tensor, Tensor | None]:
        """Returns E (V, D) and b (V,) or None, the weights of `logits`."""
        # The property, not the variable, because it includes LoRA weights.
        return ops.convert_to_tensor(self._table.embeddings), self._bias

    def _quantized_logits(self, hidden):
        """Returns the logits of a quantized E, with a gradient.

        Keras rounds `hidden` to integers here, which has no gradient, and
        ignores adapters of E (as of Keras 3.15.1).
        """
        table, token_ids = self._table, np.arange(self.vocabulary_size)
        if table.lora_enabled:
            return ops.matmul(hidden, ops.transpose(table(token_ids)))

        @ops.custom_gradient
        def product(hidden):
            def gradient(*args, upstream=None):
                # PyTorch passes `upstream`, the others a single argument.
                upstream = args[0] if upstream is None else upstream
                vectors = ops.cast(table(token_ids), upstream.dtype)
                return ops.matmul(upstream, vectors)

            return table(hidden, reverse=True), gradient

        return product(hidden)

    def compute_mask(
        self, token_ids: TensorLike, previous_mask: Nest | None = None
    ) -> Any:
        """Returns bool (B, T), False at `pad_id`."""
        if self.pad_id is None:
            return previous_mask
        return ops.not_equal(token_ids, self.pad_id)

    def compute_output_shape(self, token_ids_shape: Shape) -> Shape:
        """Returns the shape of the vectors."""
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        config.update(
            vocabulary_size=self.vocabulary_size,
            hidden_dim=self.hidden_dim,
            scale=self.scale,
            pad_id=self.pad_id,
            initializer=keras.initializers.serialize(self.initializer),
            logits_bias=self.logits_bias,
        )
        return config
