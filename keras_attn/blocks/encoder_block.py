"""Transformer encoder block."""

from typing import TYPE_CHECKING

import keras

from keras_attn import checks
from keras_attn.blocks.block import Block
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class EncoderBlock(Block):
    """Transformer encoder block.

        x = LayerNorm(x + Dropout(MultiHead(x, x, x)))
        y = LayerNorm(x + Dropout(FFN(x)))

    Vaswani et al. 2017, sec. 3.1, https://arxiv.org/abs/1706.03762. With
    `normalize_first` the layer norms precede the sublayers (Xiong et al. 2020,
    https://arxiv.org/abs/2002.04745); a stack then needs another layer norm
    after its last block.

    Args:
        num_heads: int >= 1. N.
        intermediate_dim: int >= 1. Width inside the feed-forward network.
        key_dim: int >= 1. Features per head; default D / N.
        num_key_value_heads: int dividing N. Key-value heads shared by the query
            heads; default N.
        dropout: float in [0, 1). On the output of each sublayer.
        attention_dropout: float in [0, 1). On the attention weights.
        activation_dropout: float in [0, 1). Inside the feed-forward network.
        activation: name or callable. Default `"relu"`.
        gated: bool. Gated feed-forward network. Default False.
        gate_limit: float > 0. Limit of the gated network, as in `FeedForward`.
            Default None.
        normalize_first: bool. Pre-norm instead of post-norm. Default False.
        epsilon: float. Added to the variance in the layer norms.
        use_bias: bool. Biases in projections and dense layers. Default True.
        sliding_window: int >= 1. Keys at this distance or further are masked;
            default None, no window.
        normalization: `"layer_norm"`, `"bias_free_layer_norm"` or
            `"rms_norm"`. Default `"layer_norm"`.
        normalize_output: bool. Normalize the output of each sublayer before it
            is added: with `normalize_first` as in Gemma 2, without as in
            OLMo 2. Default False.
        use_parallel_residual: bool. The feed-forward network reads the inputs
            of the block, not the attention's output, as in GPT-NeoX; requires
            `normalize_first`. Default False.
        qk_norm: `"head"` or `"all_heads"`. RMS norm of queries and keys, as in
            `MultiHeadAttention`. Default None.
        attention_soft_cap: float > 0. Bound of the attention scores, as in
            Gemma 2. Default None.
        use_sinks: bool. Attention sinks, as in gpt-oss. Default False.
        layer_scale: float > 0. Initial value of a learned factor per feature of
            each sublayer's output (Touvron et al. 2021,
            https://arxiv.org/abs/2103.17239), as in DINOv2. Default None: no
            factor.
        stochastic_depth: float in [0, 1). Probability that a row skips a
            sublayer in training (Huang et al. 2016,
            https://arxiv.org/abs/1603.09382). Default 0.0.
        use_qkv_bias: bool. Biases in the projections of queries, keys and
            values, as in Qwen 2. Default None: `use_bias`.
        skip_first_norm: bool. The self-attention reads the inputs without a
            norm, as in the first block of ModernBERT, whose embeddings are
            normalized; requires `normalize_first`. Default False.
        num_experts: int >= 1. The feed-forward network is a mixture of so many
            networks, a `MixtureOfExperts`. Default None: one network.
        num_experts_per_tok: int in [1, num_experts]. Experts for each token.
            Default 2.
        router_aux_loss_coef: float >= 0. Factor of the load-balancing loss that
            each block with experts adds in training. Default 0.01.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        attention_position: `AttentionPosition`, such as `RotaryPosition`, of
            the self-attention; default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D).
        mask: bool (B, T), True for tokens, False for padding; default: the
            implicit Keras mask.
        attention_mask: bool, (T, T), (B, T, T) or (B, N, T, T).
        positions: int32 (B, T), in tokens from 0; -1 for padding. Default: the
            number of preceding tokens.
        training: bool. Whether to apply dropout.
        segment_ids: int32 (B, T), one id per segment of a packed row. A segment
            sees only itself, and its positions count from 0.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: if an argument is out of range, the inputs are not of rank
            3, the number of heads does not divide their width, or the attention
            position does not fit the heads.

    Examples:
        >>> block = keras_attn.blocks.EncoderBlock(
        ...     num_heads=2, intermediate_dim=32)
        >>> tuple(block(keras.random.normal((2, 5, 8), seed=0)).shape)
        (2, 5, 8)
    """

    def build(self, inputs_shape: Shape) -> None:
        """Creates the sublayers."""
        self._width = width = self._width_of("inputs", inputs_shape)
        self._self_attention = self._attention("self_attention", width)
        self._around_attention = self._around_self_attention(width)
        self._network = self._feed_forward("feed_forward", width)
        self._around_network = self._residual("around_feed_forward", width)

    def call(
        self,
        inputs: TensorLike,
        mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        positions: TensorLike | None = None,
        training: bool | None = None,
        segment_ids: TensorLike | None = None,
    ) -> Tensor:
        """Applies the block; the class docstring lists the arguments."""
        x, positions = self._prepare_inputs(
            "inputs", inputs, mask, positions, segment_ids
        )
        checks.width("inputs", inputs.shape, self._width)
        seen = self._around_attention.pre(x)
        mixed = self._self_attention.attend_tokens(
            seen,
            seen,
            attention_mask=attention_mask,
            query_positions=positions,
            key_positions=positions,
            query_segment_ids=segment_ids,
            key_segment_ids=segment_ids,
            training=training,
        )
        y = self._around_attention.post(x, mixed, training=training)
        return self._apply_network(y, x, training, positions)

    if TYPE_CHECKING:
        __call__ = call
