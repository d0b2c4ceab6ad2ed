"""Transformer-XL's block: a decoder block that remembers earlier segments."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.blocks.decoder_block import DecoderBlock
from keras_attn.ops.visibility import implicit_mask


@keras.saving.register_keras_serializable(package="keras_attn")
class SegmentBlock(DecoderBlock):
    """Causal self-attention to a segment and to what came before it.

        h = [past; x]
        x = LayerNorm(x + Dropout(CausalMultiHead(x, h, h)))
        y = LayerNorm(x + Dropout(FFN(x)))

    Dai et al. 2019, sec. 3.2, https://arxiv.org/abs/1901.02860. The past are
    the inputs that this block had for the tokens before, through which no
    gradient should go (`keras.ops.stop_gradient`). Slots are one sequence, the
    past in front; distances are those of the slots, so padding belongs in front
    of the past or behind the segment. As published, the projections of the
    attention have no biases.

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
        attention_position: `AttentionPosition`, as a rule a
            `TransformerXLPosition`; default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D).
        past: float (B, M, D), the inputs of the M tokens before; default None,
            there are none.
        mask: bool (B, T), True where there is a token; default the implicit
            Keras mask.
        past_mask: bool (B, M), likewise; default: everywhere.
        segment_ids: int32 (B, T). A token sees those with its id; default: all.
        past_segment_ids: int32 (B, M), likewise; given with `segment_ids` or
            not at all.
        training: bool. Whether dropout acts.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: an argument out of range, inputs or a past not of rank 3, or
            segments of one of them only.

    Examples:
        >>> position = keras_attn.layers.TransformerXLPosition(2, 4)
        >>> block = keras_attn.blocks.SegmentBlock(
        ...     num_heads=2, intermediate_dim=32,
        ...     attention_position=position)
        >>> x = keras.random.normal((2, 9, 8), seed=0)
        >>> tuple(block(x[:, 5:], past=x[:, :5]).shape)
        (2, 4, 8)
    """

    def build(self, inputs_shape):
        """Creates the sublayers."""
        super().build(inputs_shape)

    def call(
        self,
        inputs,
        past=None,
        mask=None,
        past_mask=None,
        segment_ids=None,
        past_segment_ids=None,
        training=None,
    ):
        """Applies the block; the class docstring lists the arguments."""
        checks.rank("inputs", inputs, 3)
        mask = implicit_mask(inputs) if mask is None else mask
        x = keys = _cleaned(inputs, mask)
        before, token_mask, key_segment_ids = 0, mask, segment_ids
        if past is not None:
            checks.rank("past", past, 3)
            _check_segment_ids(segment_ids, past_segment_ids)
            before = ops.shape(past)[1]
            keys = ops.concatenate([_cleaned(past, past_mask), x], axis=1)
            token_mask = _joined(past, past_mask, inputs, mask)
            if segment_ids is not None:
                key_segment_ids = ops.concatenate(
                    [past_segment_ids, segment_ids], 1
                )
        positions = ops.arange(ops.shape(keys)[1], dtype="int32")[None]
        if token_mask is not None:
            positions = ops.where(ops.cast(token_mask, "bool"), positions, -1)
        keys = self._around_attention.pre(keys)
        mixed = self._self_attention.attend_tokens(
            keys[:, before:],
            keys,
            query_positions=positions[:, before:],
            key_positions=positions,
            query_segment_ids=segment_ids,
            key_segment_ids=key_segment_ids,
            training=training,
            offset=before,
        )
        x = self._around_attention.post(x, mixed, training=training)
        return self._apply_network(x, training)

    def _attention(self, name, width, memory_width=None, causal=False):
        return super()._attention(
            name, width, memory_width, causal, use_bias=False
        )


def _cleaned(x, mask):
    if mask is None:
        return x
    return ops.where(ops.cast(mask, "bool")[..., None], x, 0)


def _joined(past, past_mask, inputs, mask):
    """Says where there is a token in both; None where there is everywhere."""
    if past_mask is None and mask is None:
        return None
    masks = [
        ops.ones(ops.shape(x)[:2], dtype="bool")
        if given is None
        else ops.cast(given, "bool")
        for x, given in ((past, past_mask), (inputs, mask))
    ]
    return ops.concatenate(masks, axis=1)


def _check_segment_ids(segment_ids, past_segment_ids):
    if (segment_ids is None) != (past_segment_ids is None):
        missing = "segment_ids" if segment_ids is None else "past_segment_ids"
        raise ValueError(
            "`segment_ids` and `past_segment_ids` must be given together where "
            "there "
            f"is a `past`. Received: {missing}=None"
        )
