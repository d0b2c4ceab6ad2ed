"""XLNet block with two-stream attention."""

import dataclasses
from typing import TYPE_CHECKING

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import bool_mask, pad
from keras_attn.blocks.segment_block import SegmentBlock
from keras_attn.ops import Visibility
from keras_attn.ops.visibility import implicit_mask
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.cache.kv_cache import KVCache


@keras.saving.register_keras_serializable(package="keras_attn")
class TwoStreamBlock(SegmentBlock):
    """XLNet block: content and query streams that attend to the content.

        k = [past; h]
        h' = LayerNorm(h + Dropout(MultiHead(h, k, k)))     content
        g' = LayerNorm(g + Dropout(MultiHead(g, k, k)))     queries
        y = LayerNorm(x + Dropout(FFN(x))),                 both

    Yang et al. 2019, sec. 2.3, https://arxiv.org/abs/1906.08237. The streams
    share all weights, and keys and values come from the content only. The
    caller passes the visibility, which is the same for all blocks: a content
    token sees itself; a query does not see the token at its own position.

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
        use_bias: bool. Biases in the dense layers. Default True.
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
            values, as in Qwen 2. Default None: no biases.
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
        attention_position: `AttentionPosition`, usually an `XLNetPosition`;
            default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D), the content.
        queries: float (B, P, D); default None, no query stream.
        past: float (B, M, D), the content of the M preceding tokens; default
            None.
        content_visibility: `keras_attn.ops.Visibility` of the content, whose
            keys are the past and the content. Default: only padding, by the
            implicit Keras mask, is masked.
        query_visibility: `keras_attn.ops.Visibility` of the queries, for the
            same keys. Required with `queries`.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, D), the content; with queries a pair of it and float
        (B, P, D).

    Raises:
        ValueError: if an argument is out of range, the inputs are not of rank
            3, or `queries` are given without `query_visibility`.

    Examples:
        >>> block = keras_attn.blocks.TwoStreamBlock(
        ...     num_heads=2, intermediate_dim=32,
        ...     attention_position=keras_attn.layers.XLNetPosition(2, 4))
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> see = keras_attn.ops.Visibility(causal=True, strict=True)
        >>> content, output = block(x, queries=0 * x, query_visibility=see)
        >>> tuple(output.shape)
        (2, 5, 8)
    """

    def call(
        self,
        inputs: TensorLike,
        queries: TensorLike | None = None,
        past: TensorLike | None = None,
        content_visibility: Visibility | None = None,
        query_visibility: Visibility | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Applies the block; the class docstring lists the arguments."""
        checks.rank("inputs", checks.floats("inputs", inputs), 3)
        checks.width("inputs", inputs.shape, self._width)
        keys, before = inputs, 0
        if past is not None:
            checks.rank("past", checks.floats("past", past), 3)
            checks.width("past", past.shape, self._width)
            checks.batch("past", past.shape, inputs.shape[0])
            before = ops.shape(past)[1]
            keys = ops.concatenate([past, inputs], axis=1)
        if content_visibility is None:
            content_visibility = _padding_visibility(inputs, before)
        keys = self._around_attention.pre(keys)
        streams = [(keys[:, before:], content_visibility)]
        if queries is not None:
            checks.rank("queries", checks.floats("queries", queries), 3)
            checks.width("queries", queries.shape, self._width)
            checks.batch("queries", queries.shape, inputs.shape[0])
            if query_visibility is None:
                raise ValueError(
                    "`query_visibility` is required with `queries`. "
                    "Received: query_visibility=None"
                )
            streams.append(
                (self._around_attention.pre(queries), query_visibility)
            )
        streams = [(x, self._windowed(see)) for x, see in streams]
        mixed = self._self_attention.attend_streams(keys, streams, training)
        content, *rest = [
            self._apply_network(
                self._around_attention.post(x, y, training=training),
                x,
                training,
                see.query_positions,
            )
            for x, y, (_, see) in zip(
                (inputs, queries), mixed, streams, strict=False
            )
        ]
        return (content, *rest) if rest else content

    if TYPE_CHECKING:
        # Not `= call`: the base class has other arguments.
        def __call__(
            self,
            inputs: TensorLike,
            queries: TensorLike | None = None,
            past: TensorLike | None = None,
            content_visibility: Visibility | None = None,
            query_visibility: Visibility | None = None,
            training: bool | None = None,
        ) -> Tensor:
            """Applies the block; the class docstring lists the arguments."""

    def decode_queries(
        self,
        queries: TensorLike,
        positions: TensorLike,
        order: TensorLike,
        cache: "KVCache",
        layer: int,
    ) -> Tensor:
        """Applies the block to queries that attend to cached tokens.

        Args:
            queries: float (R, T, D).
            positions: int32 (R, T), the positions of the queries.
            order: int32 (R, T), the last position that each query sees.
            cache: `KVCache`, read-only.
            layer: int. Index of this block in the cache.

        Returns:
            Float (R, T, D).
        """
        mixed = self._self_attention.attend_to_cache(
            self._around_attention.pre(queries),
            positions,
            order,
            cache,
            layer,
        )
        x = self._around_attention.post(queries, mixed)
        return self._apply_network(x, queries, training=False)

    def _windowed(self, visibility):
        if self.sliding_window is None:
            return visibility
        return dataclasses.replace(visibility, window=self.sliding_window)


def _padding_visibility(inputs, before):
    length = before + ops.shape(inputs)[1]
    positions = ops.arange(length, dtype="int32")[None]
    mask = implicit_mask(inputs)
    if mask is not None:
        mask = bool_mask("mask", mask)
        mask = pad(mask, ((0, 0), (before, 0)), True)
        positions = ops.where(mask, positions, -1)
    return Visibility(
        query_positions=positions[:, before:],
        key_positions=positions,
        padding="any",
        offset=before,
    )
