"""Transformer decoder block."""

from typing import TYPE_CHECKING

import keras

from keras_attn import checks
from keras_attn.blocks.block import Block
from keras_attn.typing import Nest, Shape, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.cache.decoding_step import DecodingStep
    from keras_attn.cache.kv_cache import KVCache
    from keras_attn.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_attn")
class DecoderBlock(Block):
    """Transformer decoder block.

        x = LayerNorm(x + Dropout(CausalMultiHead(x, x, x)))
        x = LayerNorm(x + Dropout(MultiHead(x, memory, memory)))
        y = LayerNorm(x + Dropout(FFN(x)))

    Vaswani et al. 2017, sec. 3.1, https://arxiv.org/abs/1706.03762. With
    `normalize_first` the layer norms precede the sublayers (Xiong et al. 2020,
    https://arxiv.org/abs/2002.04745); a stack then needs another layer norm
    after its last block.

    Without a memory there is no cross-attention, as in a language model such as
    GPT (Radford et al. 2018). The block has cross-attention if a memory is
    passed when it is built, by its first call or by `build`.

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
        sliding_window: int >= 1. The self-attention masks keys at this distance
            or further; default None, no window.
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
        memory: float (B, S, D'), the encoder's output; default None, no
            cross-attention.
        mask: bool (B, T), True for tokens, False for padding; default: the
            implicit Keras mask.
        memory_mask: bool (B, S), the same for the memory.
        attention_mask: bool, (T, T), (B, T, T) or (B, N, T, T), combined with
            the causal mask of the self-attention by AND.
        positions: int32 (B, T), in tokens from 0; -1 for padding. Default: the
            number of preceding tokens.
        memory_positions: int32 (B, S), the same for the memory.
        training: bool. Whether to apply dropout.
        segment_ids: int32 (B, T), one id per segment of a packed row. A segment
            sees only itself, and its positions count from 0.
        memory_segment_ids: int32 (B, S). A segment sees the part of the memory
            with the same id; default: all of it.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: if an argument is out of range, the inputs are not of rank
            3, the number of heads does not divide their width, the attention
            position does not fit the heads, or a memory is passed to a block
            built without one, or the reverse.

    Examples:
        >>> block = keras_attn.blocks.DecoderBlock(
        ...     num_heads=2, intermediate_dim=32)
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> memory = keras.random.normal((2, 7, 8), seed=1)
        >>> tuple(block(x, memory).shape)
        (2, 5, 8)
    """

    def build(
        self, inputs_shape: Shape, memory_shape: Shape | None = None
    ) -> None:
        """Creates the sublayers."""
        self._width = width = self._width_of("inputs", inputs_shape)
        self._memory_width = None
        if memory_shape is not None:
            if self.use_parallel_residual:
                raise ValueError(
                    "`use_parallel_residual` must be False in a block with a "
                    "memory. Received: use_parallel_residual=True"
                )
            self._memory_width = self._width_of("memory", memory_shape)
        self._self_attention = self._attention(
            "self_attention", width, causal=True
        )
        self._around_attention = self._around_self_attention(width)
        self._cross_attention = None
        if memory_shape is not None:
            self._cross_attention = self._attention(
                "cross_attention", width, self._memory_width
            )
            self._around_cross = self._residual("around_cross_attention", width)
        self._network = self._feed_forward("feed_forward", width)
        self._around_network = self._residual("around_feed_forward", width)

    def call(
        self,
        inputs: TensorLike,
        memory: TensorLike | None = None,
        mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        positions: TensorLike | None = None,
        memory_positions: TensorLike | None = None,
        training: bool | None = None,
        segment_ids: TensorLike | None = None,
        memory_segment_ids: TensorLike | None = None,
    ) -> Tensor:
        """Applies the block; the class docstring lists the arguments."""
        if segment_ids is None and memory_segment_ids is not None:
            raise ValueError(
                "`memory_segment_ids` requires `segment_ids`. "
                "Received: segment_ids=None"
            )
        self._check_memory(
            memory,
            memory_mask=memory_mask,
            memory_positions=memory_positions,
            memory_segment_ids=memory_segment_ids,
        )
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
        if memory is None:
            return self._apply_network(y, x, training, positions)
        memory, memory_positions = self._prepare_inputs(
            "memory",
            memory,
            memory_mask,
            memory_positions,
            memory_segment_ids,
        )
        checks.width("memory", memory.shape, self._memory_width)
        checks.batch("memory", memory.shape, inputs.shape[0])
        mixed = self._cross_attention.attend_tokens(
            self._around_cross.pre(y),
            memory,
            query_positions=positions,
            key_positions=memory_positions,
            query_segment_ids=None
            if memory_segment_ids is None
            else segment_ids,
            key_segment_ids=memory_segment_ids,
            training=training,
        )
        y = self._around_cross.post(y, mixed, training=training)
        return self._apply_network(y, x, training, positions)

    if TYPE_CHECKING:
        __call__ = call

    @property
    def cross_attention(self) -> "MultiHeadAttention | None":
        """The cross-attention, a `MultiHeadAttention`, or None."""
        return self._cross_attention

    def project_memory(
        self, memory: TensorLike, positions: TensorLike
    ) -> tuple[Tensor, Tensor]:
        """Projects the memory's keys and values, once for all steps.

        Args:
            memory: float (B, S, D').
            positions: int32 (B, S), -1 for padding.

        Returns:
            Keys (B, S, K, H) and values (B, S, K, H).
        """
        return self._cross_attention.project_memory(memory, positions)

    def prepare_weights(self) -> Nest:
        """Fuses the projections of the self-attention for decoding steps.

        Returns:
            Nest of tensors, or (): the entry of this block in the `weights` of
            a `keras_attn.cache.DecodingStep`.
        """
        return self._self_attention.prepare_weights()

    def decode_step(
        self,
        inputs: TensorLike,
        cache: "KVCache",
        layer: int,
        step: "DecodingStep",
    ) -> "tuple[Tensor, KVCache]":
        """Applies the block to new tokens only.

        Args:
            inputs: float (R, T, D), the new tokens.
            cache: `KVCache` of the hypotheses, consumed.
            layer: int. Index of this block in the cache and in the memory.
            step: `keras_attn.cache.DecodingStep`.

        Returns:
            Float (R, T, D) and the cache of the hypotheses.
        """
        x = inputs
        mixed, cache = self._self_attention.decode_step(
            self._around_attention.pre(x), cache, layer, step
        )
        y = self._around_attention.post(x, mixed)
        if self._cross_attention is not None:
            mixed = self._cross_attention.attend_memory(
                self._around_cross.pre(y), step.memory, layer
            )
            y = self._around_cross.post(y, mixed)
        return self._apply_network(y, x, training=False), cache

    def _check_memory(self, memory, **others):
        given = memory is not None
        for name, value in others.items():
            if value is not None and not given:
                raise ValueError(
                    f"`{name}` requires `memory`. Received: memory=None"
                )
        if given != (self._cross_attention is not None):
            raise ValueError(
                "`memory` must be given in every call if the block was built "
                "with one, and in no call otherwise. "
                f"Received: {'a memory' if given else 'none'}"
            )
