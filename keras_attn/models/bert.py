"""BERT, the bidirectional encoder."""

from typing import Any

import keras

from keras_attn import checks
from keras_attn.models.encoder import Encoder
from keras_attn.models.encoder_parts import first_tokens
from keras_attn.typing import Activation, Initializer, Nest, Tensor, TensorLike

# As published; keyword arguments override them.
_DEFAULTS = {
    "position_embedding": "learned",
    "scale_embedding": False,
    "normalize_embedding": True,
}
_INITIAL_STDDEV = 0.02  # as published


@keras.saving.register_keras_serializable(package="keras_attn")
class Bert(Encoder):
    """BERT encoder with per-token outputs and a pooled output.

        h = Blocks(LayerNorm(E[x] + P + G[segment]))
        pooled = tanh(h[0] W + b)

    Devlin et al. 2019, https://arxiv.org/abs/1810.04805: an `Encoder` with
    learned positions, a layer norm after the sum of its embeddings, and a
    pooler on the first token, `[CLS]`. The defaults are those of the base
    model.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int. D.
        intermediate_dim: int. Width inside the feed-forward networks.
        dropout: float in [0, 1). On embeddings and on sublayer outputs.
        attention_dropout: float in [0, 1). On attention weights.
        activation: name or callable. Default `"gelu"`, without
            the tanh approximation.
        epsilon: float. Added to the variance in layer norms.
        max_sequence_length: int. The longest sequence, in tokens: rows of the
            position table.
        num_segments: int. Number of segment ids.
        pooler: bool. Whether there is a pooled output. Default True.
        initializer: initializer of kernels and embedding tables. Default: a
            truncated normal with a standard deviation of 0.02.
        **kwargs: other arguments of `Encoder`, such as `pad_id`, `name` and
            `dtype`.

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"`
            and, optionally, int32 (B, T) as `"segment_ids"`, default zeros, and
            bool (B, T) as `"padding_mask"`, True at tokens, default True
            except at `pad_id`. Positions count tokens only, so padding may be
            on either side.
        training: bool. Whether to apply dropout.

    Returns:
        Dict of float (B, T, D) as `"sequence_output"` and, with a pooler, float
        (B, D) as `"pooled_output"`.

    Raises:
        ValueError: as for `Encoder`.

    Examples:
        >>> model = keras_attn.models.Bert(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> outputs = model({
        ...     "token_ids": np.array([[2, 7, 3, 8, 3]]),
        ...     "segment_ids": np.array([[0, 0, 0, 1, 1]])})
        >>> tuple(outputs["pooled_output"].shape)
        (1, 16)
    """

    _may_be_missing = frozenset(("segment_ids",))

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 12,
        num_heads: int = 12,
        hidden_dim: int = 768,
        intermediate_dim: int = 3072,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: Activation = "gelu",
        epsilon: float = 1e-12,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        pooler: bool = True,
        initializer: Initializer | None = None,
        **kwargs: Any,
    ) -> None:
        if initializer is None:
            initializer = keras.initializers.TruncatedNormal(
                stddev=_INITIAL_STDDEV
            )
        checks.boolean("pooler", pooler)
        super().__init__(
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation=activation,
            epsilon=epsilon,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            initializer=initializer,
            **(_DEFAULTS | kwargs),
        )
        self.pooler = pooler
        if pooler:
            self._pooler_dense = keras.layers.Dense(
                hidden_dim,
                activation="tanh",
                dtype=self.dtype_policy,
                name="pooler",
                **self._initializers("kernel_initializer"),
            )
            self._pooler_dense.build((None, hidden_dim))

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        x, positions = self.encode(inputs, training=training)
        outputs = {"sequence_output": x}
        if self.pooler:
            outputs["pooled_output"] = self.pool(x, positions)
        return outputs

    def pool(self, x: TensorLike, positions: TensorLike) -> Tensor:
        """Returns the pooled output, computed from the first token.

        Args:
            x: float (B, T, D), from `encode`.
            positions: int32 (B, T), from `encode`.

        Returns:
            Float (B, D).

        Raises:
            ValueError: the model has no pooler.
        """
        if not self.pooler:
            raise ValueError(
                "`pool` needs a model with a pooler. Received: pooler=False"
            )
        return self._pooler_dense(first_tokens(x, positions))

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shapes of the outputs."""
        shape = super().compute_output_shape(inputs_shape)
        shapes = {"sequence_output": shape}
        if self.pooler:
            shapes["pooled_output"] = (shape[0], shape[2])
        return shapes

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {"pooler": self.pooler}
