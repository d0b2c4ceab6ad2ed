"""XLNet's block: one stream that knows its tokens, one that must guess them."""

import dataclasses

import keras
from keras import ops

from keras_attn import checks
from keras_attn.blocks.segment_block import SegmentBlock
from keras_attn.ops import Visibility
from keras_attn.ops.visibility import implicit_mask


@keras.saving.register_keras_serializable(package="keras_attn")
class TwoStreamBlock(SegmentBlock):
    """Attention of two streams to what one of them holds.

        k = [past; h]
        h' = LayerNorm(h + Dropout(MultiHead(h, k, k)))     content
        g' = LayerNorm(g + Dropout(MultiHead(g, k, k)))     queries
        y = LayerNorm(x + Dropout(FFN(x))),                 of both

    Yang et al. 2019, sec. 2.3, https://arxiv.org/abs/1906.08237. Both streams
    share all weights, and only the content is ever looked at. Who sees whom is
    described outside, once for all blocks: a content token sees itself, a query
    does not see what stands at its place.

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
        use_bias: bool. Biases in the dense layers. Default True.
        sliding_window: int >= 1. Keys this far or further are hidden; default
            None, no window.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        attention_position: `AttentionPosition`, as a rule an `XLNetPosition`;
            default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D), the content.
        queries: float (B, P, D); default None, there are none.
        past: float (B, M, D), the content of the M tokens before; default None.
        content_visibility: `keras_attn.ops.Visibility` of the content, whose
            keys are the past and the content. Default: all of it, but for what
            the implicit Keras mask hides.
        query_visibility: `keras_attn.ops.Visibility` of the queries, of the
            same keys.
        training: bool. Whether dropout acts.

    Returns:
        Float (B, T, D), the content; with queries a pair of it and float
        (B, P, D).

    Raises:
        ValueError: an argument out of range, inputs not of rank 3, or queries
            of which nothing is said.

    Examples:
        >>> block = keras_attn.blocks.TwoStreamBlock(
        ...     num_heads=2, intermediate_dim=32,
        ...     attention_position=keras_attn.layers.XLNetPosition(2, 4))
        >>> x = keras.random.normal((2, 5, 8), seed=0)
        >>> see = keras_attn.ops.Visibility(causal=True, strict=True)
        >>> content, guesses = block(x, queries=0 * x, query_visibility=see)
        >>> tuple(guesses.shape)
        (2, 5, 8)
    """

    def call(
        self,
        inputs,
        queries=None,
        past=None,
        content_visibility=None,
        query_visibility=None,
        training=None,
    ):
        """Applies the block; the class docstring lists the arguments."""
        checks.rank("inputs", inputs, 3)
        keys, before = inputs, 0
        if past is not None:
            checks.rank("past", past, 3)
            before = ops.shape(past)[1]
            keys = ops.concatenate([past, inputs], axis=1)
        if content_visibility is None:
            content_visibility = _everything(inputs, before)
        keys = self._around_attention.pre(keys)
        streams = [(keys[:, before:], content_visibility)]
        if queries is not None:
            checks.rank("queries", queries, 3)
            if query_visibility is None:
                raise ValueError(
                    "`query_visibility` must say what `queries` see. "
                    "Received: query_visibility=None"
                )
            streams.append(
                (self._around_attention.pre(queries), query_visibility)
            )
        streams = [(x, self._near(see)) for x, see in streams]
        mixed = self._self_attention.attend_streams(keys, streams, training)
        content, *rest = [
            self._apply_network(
                self._around_attention.post(x, y, training=training), training
            )
            for x, y in zip((inputs, queries), mixed, strict=False)
        ]
        return (content, *rest) if rest else content

    def decode_queries(self, queries, positions, order, cache, layer):
        """Applies the block to queries behind written tokens.

        Args:
            queries: float (R, T, D).
            positions: int32 (R, T), where they stand.
            order: int32 (R, T), the last positions that they see.
            cache: `KVCache`, read only.
            layer: int. Which layer of the cache this block is.

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
        return self._apply_network(x, training=False)

    def _near(self, visibility):
        if self.sliding_window is None:
            return visibility
        return dataclasses.replace(visibility, window=self.sliding_window)


def _everything(inputs, before):
    length = before + ops.shape(inputs)[1]
    positions = ops.arange(length, dtype="int32")[None]
    mask = implicit_mask(inputs)
    if mask is not None:
        mask = ops.pad(
            ops.cast(mask, "bool"), ((0, 0), (before, 0)), constant_values=True
        )
        positions = ops.where(mask, positions, -1)
    return Visibility(
        query_positions=positions[:, before:],
        key_positions=positions,
        padding="any",
        offset=before,
    )
