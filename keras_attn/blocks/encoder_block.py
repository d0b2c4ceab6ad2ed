"""The Transformer's encoder block."""

import keras

from keras_attn.blocks.block import Block


@keras.saving.register_keras_serializable(package="keras_attn")
class EncoderBlock(Block):
    """Self-attention and a feed-forward network, each with its residual.

        x = LayerNorm(x + Dropout(MultiHead(x, x, x)))
        y = LayerNorm(x + Dropout(FFN(x)))

    Vaswani et al. 2017, sec. 3.1, https://arxiv.org/abs/1706.03762. With
    `normalize_first` the norms move to the front of the sublayers (Xiong et
    al. 2020, https://arxiv.org/abs/2002.04745); a stack then wants one more
    layer norm behind its last block.

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
        sliding_window: int >= 1. Keys this far or further are hidden; default
            None, no window.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        attention_position: `AttentionPosition`, such as `RotaryPosition`, of
            the self-attention; default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D).
        mask: bool (B, T), True where there is a token; default the implicit
            Keras mask.
        attention_mask: bool, (T, T), (B, T, T) or (B, N, T, T).
        positions: int32 (B, T), in tokens from 0; -1 = no token. Default: the
            count of tokens before.
        training: bool. Whether dropout acts.
        segment_ids: int32 (B, T), an id for each sentence of a packed row: it
            sees only itself, and its positions count from 0.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: an argument out of range, inputs not of rank 3, heads that
            do not divide their width, or a position that does not fit them.

    Examples:
        >>> block = keras_attn.blocks.EncoderBlock(
        ...     num_heads=2, intermediate_dim=32)
        >>> tuple(block(keras.random.normal((2, 5, 8), seed=0)).shape)
        (2, 5, 8)
    """

    def build(self, inputs_shape):
        """Creates the sublayers."""
        width = inputs_shape[-1]
        self._self_attention = self._attention("self_attention", width)
        self._around_attention = self._residual("around_attention", width)
        self._network = self._feed_forward("feed_forward", width)
        self._around_network = self._residual("around_feed_forward", width)

    def call(
        self,
        inputs,
        mask=None,
        attention_mask=None,
        positions=None,
        training=None,
        segment_ids=None,
    ):
        """Applies the block; the class docstring lists the arguments."""
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
        network = self._network(self._around_network.pre(x), training=training)
        return self._around_network.post(x, network, training=training)
