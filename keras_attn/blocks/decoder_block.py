"""The Transformer's decoder block."""

import keras

from keras_attn.blocks.block import Block


@keras.saving.register_keras_serializable(package="keras_attn")
class DecoderBlock(Block):
    """Causal self-attention, attention to a memory, feed-forward network.

        x = LayerNorm(x + Dropout(CausalMultiHead(x, x, x)))
        x = LayerNorm(x + Dropout(MultiHead(x, memory, memory)))
        y = LayerNorm(x + Dropout(FFN(x)))

    Vaswani et al. 2017, sec. 3.1, https://arxiv.org/abs/1706.03762. With
    `normalize_first` the norms move to the front of the sublayers (Xiong et
    al. 2020, https://arxiv.org/abs/2002.04745); a stack then wants one more
    layer norm behind its last block.

    Without a memory the second sublayer is not there: the block of a language
    model, as in GPT (Radford et al. 2018). What the block is built with, by its
    first call or by `build`, decides.

    Args:
        num_heads: int >= 1. N.
        intermediate_dim: int >= 1. Width inside the feed-forward network.
        key_dim: int >= 1. Features per head; default D / N.
        num_key_value_heads: int dividing N. Heads of keys and values that the
            query heads share; default N.
        dropout: float in [0, 1). On the output of each sublayer.
        attention_dropout: float in [0, 1). On the attention weights.
        activation_dropout: float in [0, 1). Inside the feed-forward network.
        activation: name or callable. Default `"relu"`.
        gated: bool. Gated feed-forward network. Default False.
        normalize_first: bool. Pre-norm instead of post-norm. Default False.
        epsilon: float. Added to the variance in the layer norms.
        use_bias: bool. Biases in projections and dense layers. Default True.
        sliding_window: int >= 1. Keys this far or further are hidden from the
            self-attention; default None, no window.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        attention_position: `AttentionPosition`, such as `RotaryPosition`, of
            the self-attention; default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D).
        memory: float (B, S, D'), the encoder's output; default None, there is
            none.
        mask: bool (B, T), True where there is a token; default the implicit
            Keras mask.
        memory_mask: bool (B, S), likewise.
        attention_mask: bool, (T, T), (B, T, T) or (B, N, T, T), ANDed to the
            causal mask of the self-attention.
        positions: int32 (B, T), in tokens from 0; -1 = no token. Default: the
            count of tokens before.
        memory_positions: int32 (B, S), likewise.
        training: bool. Whether dropout acts.
        segment_ids: int32 (B, T), an id for each sentence of a packed row: it
            sees only itself, and its positions count from 0.
        memory_segment_ids: int32 (B, S). A sentence sees the part of the memory
            that has its id; default: all of it.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: an argument out of range, inputs not of rank 3, heads that
            do not divide their width, a position that does not fit them, or a
            memory that a block built without one is given, and the reverse.

    Examples:
        >>> block = keras_attn.blocks.DecoderBlock(
        ...     num_heads=2, intermediate_dim=32)
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> memory = keras.random.normal((2, 7, 8), seed=1)
        >>> tuple(block(x, memory).shape)
        (2, 5, 8)
    """

    def build(self, inputs_shape, memory_shape=None):
        """Creates the sublayers."""
        width = inputs_shape[-1]
        self._self_attention = self._attention(
            "self_attention", width, causal=True
        )
        self._around_attention = self._residual("around_attention", width)
        self._cross_attention = None
        if memory_shape is not None:
            self._cross_attention = self._attention(
                "cross_attention", width, memory_shape[-1]
            )
            self._around_cross = self._residual("around_cross_attention", width)
        self._network = self._feed_forward("feed_forward", width)
        self._around_network = self._residual("around_feed_forward", width)

    def call(
        self,
        inputs,
        memory=None,
        mask=None,
        memory_mask=None,
        attention_mask=None,
        positions=None,
        memory_positions=None,
        training=None,
        segment_ids=None,
        memory_segment_ids=None,
    ):
        """Applies the block; the class docstring lists the arguments."""
        if segment_ids is None and memory_segment_ids is not None:
            raise ValueError(
                "`memory_segment_ids` must come with `segment_ids`. "
                "Received: segment_ids=None"
            )
        self._check_memory(memory is not None)
        x, positions = self._prepare_inputs(
            "inputs", inputs, mask, positions, segment_ids
        )
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
        x = self._around_attention.post(x, mixed, training=training)
        if memory is None:
            return self._apply_network(x, training)
        memory, memory_positions = self._prepare_inputs(
            "memory",
            memory,
            memory_mask,
            memory_positions,
            memory_segment_ids,
        )
        mixed = self._cross_attention.attend_tokens(
            self._around_cross.pre(x),
            memory,
            query_positions=positions,
            key_positions=memory_positions,
            query_segment_ids=None
            if memory_segment_ids is None
            else segment_ids,
            key_segment_ids=memory_segment_ids,
            training=training,
        )
        x = self._around_cross.post(x, mixed, training=training)
        return self._apply_network(x, training)

    @property
    def cross_attention(self):
        """The attention to the memory, a `MultiHeadAttention`, or None."""
        return self._cross_attention

    def project_memory(self, memory, positions):
        """Projects the memory's keys and values, once for all steps.

        Args:
            memory: float (B, S, D').
            positions: int32 (B, S), -1 = no token.

        Returns:
            Keys (B, S, K, H) and values (B, S, K, H).
        """
        return self._cross_attention.project_memory(memory, positions)

    def prepare_weights(self):
        """Returns what `decode_step` takes as `weights`."""
        return self._self_attention.prepare_weights()

    def decode_step(self, inputs, positions, cache, memory, layer, weights=()):
        """Applies the block to new tokens only.

        Args:
            inputs: float (R, T, D), the new tokens.
            positions: int32 (R, T), from `keras_attn.cache.open_slots`.
            cache: `KVCache` of the hypotheses, consumed.
            memory: `KVCache` of the projected memory, read only; () where there
                is none.
            layer: int. Which layer of both caches this block is.
            weights: what `prepare_weights` returned, or ().

        Returns:
            Float (R, T, D) and the cache of the hypotheses.
        """
        x = inputs
        mixed, cache = self._self_attention.decode_step(
            self._around_attention.pre(x), positions, cache, layer, weights
        )
        x = self._around_attention.post(x, mixed)
        if self._cross_attention is not None:
            mixed = self._cross_attention.attend_memory(
                self._around_cross.pre(x), memory, layer
            )
            x = self._around_cross.post(x, mixed)
        return self._apply_network(x, training=False), cache

    def _apply_network(self, x, training):
        network = self._network(self._around_network.pre(x), training=training)
        return self._around_network.post(x, network, training=training)

    def _check_memory(self, given):
        if given != (self._cross_attention is not None):
            raise ValueError(
                "`memory` must be given to every call of a block that was "
                "built with one, and to none of one that was built without. "
                f"Received: {'a memory' if given else 'none'}"
            )
