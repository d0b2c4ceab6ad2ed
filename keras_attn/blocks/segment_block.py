"""Transformer-XL block with segment-level recurrence."""

from typing import TYPE_CHECKING

import keras
from keras import ops

from keras_attn import checks
from keras_attn.blocks.decoder_block import DecoderBlock
from keras_attn.layers.attention_inputs import bool_masks
from keras_attn.ops.visibility import implicit_mask
from keras_attn.typing import Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class SegmentBlock(DecoderBlock):
    """Transformer-XL block: causal attention to a segment and its past.

        h = [past; x]
        x = LayerNorm(x + Dropout(CausalMultiHead(x, h, h)))
        y = LayerNorm(x + Dropout(FFN(x)))

    Dai et al. 2019, sec. 3.2, https://arxiv.org/abs/1901.02860. `past` are this
    block's inputs for the preceding tokens; stop their gradient with
    `keras.ops.stop_gradient`. The past and the segment form one sequence of
    slots. Distances are between slots, so padding belongs before the past or
    after the segment. As in the paper, the attention's projections have no
    biases.

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
        attention_position: `AttentionPosition`, usually a
            `TransformerXLPosition`; default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D).
        past: float (B, M, D), the inputs of the M preceding tokens; default
            None, no past.
        mask: bool (B, T), True for tokens, False for padding; default: the
            implicit Keras mask.
        past_mask: bool (B, M), the same for the past; default: no padding.
        segment_ids: int32 (B, T). Tokens see tokens with the same id; default:
            all tokens.
        past_segment_ids: int32 (B, M), the same for the past; required with
            `segment_ids`.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: if an argument is out of range, the inputs or the past are
            not of rank 3, or only one of them has segment ids.

    Examples:
        >>> position = keras_attn.layers.TransformerXLPosition(2, 4)
        >>> block = keras_attn.blocks.SegmentBlock(
        ...     num_heads=2, intermediate_dim=32,
        ...     attention_position=position)
        >>> x = keras.random.normal((2, 9, 8), seed=0)
        >>> tuple(block(x[:, 5:], past=x[:, :5]).shape)
        (2, 4, 8)
    """

    def build(self, inputs_shape: Shape) -> None:
        """Creates the sublayers."""
        super().build(inputs_shape)

    def call(
        self,
        inputs: TensorLike,
        past: TensorLike | None = None,
        mask: TensorLike | None = None,
        past_mask: TensorLike | None = None,
        segment_ids: TensorLike | None = None,
        past_segment_ids: TensorLike | None = None,
        training: bool | None = None,
    ) -> Tensor:
        """Applies the block; the class docstring lists the arguments."""
        checks.rank("inputs", checks.floats("inputs", inputs), 3)
        checks.width("inputs", inputs.shape, self._width)
        if past is None:
            _check_no_past(
                past_mask=past_mask, past_segment_ids=past_segment_ids
            )
        rows = inputs.shape[0]
        _check_tokens("", inputs, rows, mask, segment_ids)
        if past is not None:
            checks.rank("past", checks.floats("past", past), 3)
            checks.width("past", past.shape, self._width)
            checks.batch("past", past.shape, rows)
            _check_tokens("past_", past, rows, past_mask, past_segment_ids)
        mask = implicit_mask(inputs) if mask is None else mask
        mask, past_mask = bool_masks(("mask", "past_mask"), (mask, past_mask))
        x = keys = _zero_padding(inputs, mask)
        before, token_mask, key_segment_ids = 0, mask, segment_ids
        if past is not None:
            _check_segment_ids(segment_ids, past_segment_ids)
            before = ops.shape(past)[1]
            keys = ops.concatenate([_zero_padding(past, past_mask), x], axis=1)
            token_mask = _joint_mask(past, past_mask, inputs, mask)
            if segment_ids is not None:
                key_segment_ids = ops.concatenate(
                    [past_segment_ids, segment_ids], 1
                )
        positions = ops.arange(ops.shape(keys)[1], dtype="int32")[None]
        if token_mask is not None:
            positions = ops.where(token_mask, positions, -1)
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
        y = self._around_attention.post(x, mixed, training=training)
        return self._apply_network(y, x, training, positions[:, before:])

    if TYPE_CHECKING:
        # Not `= call`: the base class has other arguments.
        def __call__(
            self,
            inputs: TensorLike,
            past: TensorLike | None = None,
            mask: TensorLike | None = None,
            past_mask: TensorLike | None = None,
            segment_ids: TensorLike | None = None,
            past_segment_ids: TensorLike | None = None,
            training: bool | None = None,
        ) -> Tensor:
            """Applies the block; the class docstring lists the arguments."""

    def _attention(self, name, width, memory_width=None, causal=False):
        return super()._attention(
            name, width, memory_width, causal, use_bias=False
        )


def _check_tokens(prefix, tokens, rows, mask, segment_ids):
    """Checks that there is one mask value and segment id per token."""
    length = tokens.shape[1]
    if mask is not None:
        checks.per_token(f"{prefix}mask", mask, rows, length)
    if segment_ids is not None:
        name = f"{prefix}segment_ids"
        checks.integers(name, segment_ids)
        checks.per_token(name, segment_ids, rows, length)


def _zero_padding(x, mask):
    if mask is None:
        return x
    return ops.where(mask[..., None], x, 0)


def _joint_mask(past, past_mask, inputs, mask):
    """Returns the token mask of past and inputs; None without padding."""
    if past_mask is None and mask is None:
        return None
    masks = [
        ops.ones(ops.shape(x)[:2], dtype="bool") if given is None else given
        for x, given in ((past, past_mask), (inputs, mask))
    ]
    return ops.concatenate(masks, axis=1)


def _check_no_past(**others):
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"`{name}` requires `past`. Received: past=None")


def _check_segment_ids(segment_ids, past_segment_ids):
    if (segment_ids is None) != (past_segment_ids is None):
        missing = "segment_ids" if segment_ids is None else "past_segment_ids"
        raise ValueError(
            "`segment_ids` and `past_segment_ids` must be given together if "
            f"`past` is given. Received: {missing}=None"
        )
