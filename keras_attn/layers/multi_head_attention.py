"""Multi-head attention."""

import keras
from keras import ops

from keras_attn.backend import apply_dense
from keras_attn.layers.attention_inputs import read_inputs
from keras_attn.layers.cached_attention import CachedAttention
from keras_attn.ops import WeightDropout
from keras_attn.ops.attend import attend_sanitized
from keras_attn.ops.capture import capturing, record
from keras_attn.ops.visibility import has_visible_key, make_visibility


@keras.saving.register_keras_serializable(package="keras_attn")
class MultiHeadAttention(CachedAttention):
    """Multi-head scaled dot-product attention layer.

        head_n = softmax(Q W_n^Q (K W_n^K)^T / sqrt(H)) V W_n^V
        output = [head_1; ...; head_N] W^O

    Vaswani et al. 2017, sec. 3.2, https://arxiv.org/abs/1706.03762. Their h,
    d_k, d_model are N, H, D here. Unlike the paper, biases are on by default.

    Constructor, call and weights match `keras.layers.MultiHeadAttention`: its
    `get_weights()` load here and give the same output in every row that is not
    fully masked. Intentional differences: every code path applies every mask,
    the input tensors keep their masks, and padding or fully masked queries
    return exact zeros.

    Args:
        num_heads: int >= 1. N.
        key_dim: int >= 1. H, features per head (not in total).
        value_dim: int >= 1. W, value features per head. Default `key_dim`.
        dropout: float in [0, 1). Dropout probability of the attention weights.
        use_bias: bool. Whether the projections have biases. Default True.
        output_shape: int or tuple of int. Features of the output. Default D.
        attention_axes: int or tuple of int. Axes to attend over. Default: all
            between the batch and the feature axis.
        sliding_window: int >= 1. Keys at this distance from the query or more
            are masked. Default None: no window.
        flash_attention: bool. True forces the fused kernel and raises if it is
            not applicable, False the plain kernel. Default None: the fastest.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        kernel_regularizer: regularizer of the kernels.
        bias_regularizer: regularizer of the biases.
        activity_regularizer: regularizer of the projections' outputs.
        kernel_constraint: constraint on the kernels.
        bias_constraint: constraint on the biases.
        use_gate: bool. Multiply the heads by sigmoid(query W^G) before W^O.
        seed: int. Seed of the dropout.
        num_key_value_heads: int dividing N. Key and value heads, shared by
            groups of query heads. Default N (1 is multi-query attention).
        causal: bool. Always mask keys at later positions. Default False.
        attention_position: `AttentionPosition`, such as `RotaryPosition`,
            `ALiBiPosition` or `T5Position`. Position encoding of the scores.
            Default None.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).
        value: float (B, S, D').
        key: float (B, S, D''). Default `value`.
        query_mask: bool (B, T), True for tokens, False for padding. Default:
            the implicit Keras mask of `query`.
        value_mask: bool (B, S), same for `value`.
        key_mask: bool (B, S), same for `key`.
        attention_mask: anything castable to bool, (T, S), (B, T, S) or
            (B, N, T, S), True = may attend.
        return_attention_scores: bool. Also return the attention weights (Keras
            calls them scores).
        training: bool. Whether to apply dropout.
        use_causal_mask: bool. Mask later keys in this call.
        query_positions: int32 (B, T), in tokens from 0; -1 = no token.
            Default: the number of preceding tokens.
        key_positions: int32 (B, S), same for keys.
        query_segment_ids: int32 (B, T), an id per sequence of a packed row.
            Each sequence attends only to itself; its positions count from 0.
        key_segment_ids: int32 (B, S), same for keys.

    Returns:
        Float (B, T, D), zero for fully masked queries. With
        `return_attention_scores`, a pair of the output and the weights before
        dropout, (B, N, T, S).

    Raises:
        ValueError: an argument is out of range, `num_heads` is not a multiple
            of `num_key_value_heads`, ranks or widths do not match, causal
            attention or a position is used with more than one attention axis,
            or the position does not fit the heads.

    Masking: reads implicit Keras masks and propagates that of the query.
    Cost: 2 B N T S H multiply-adds; only the plain kernel stores (T, S).

    Examples:
        >>> x = keras.random.normal((2, 5, 16), seed=0)
        >>> layer = keras_attn.layers.MultiHeadAttention(
        ...     num_heads=4, key_dim=4, causal=True)
        >>> y, weights = layer(x, x, return_attention_scores=True)
        >>> tuple(y.shape), tuple(weights.shape)
        ((2, 5, 16), (2, 4, 5, 5))
    """

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        query_positions=None,
        key_positions=None,
        query_segment_ids=None,
        key_segment_ids=None,
    ):
        """Applies the layer; the class docstring lists the arguments."""
        axes = self._axes
        causal = self.causal or use_causal_mask
        if causal and len(axes.axes) != 1:
            raise ValueError(
                "Causal attention needs exactly one attention axis. "
                f"Received: attention_axes={axes.axes}"
            )
        inputs = query, value, value if key is None else key
        self._check_shapes(*(x.shape for x in inputs))
        query, value, key, visibility = read_inputs(
            axes,
            inputs,
            masks=(query_mask, value_mask, key_mask),
            positions=(query_positions, key_positions),
            segments=(query_segment_ids, key_segment_ids),
            attention_mask=attention_mask,
            causal=causal,
            window=self.sliding_window,
            relative=self.attention_position is not None,
        )
        positions = visibility.query_positions, visibility.key_positions
        output, weights = self._attend(
            query,
            self._heads(query, key, value, *positions),
            visibility,
            training,
            return_attention_scores,
        )
        output = axes.unfold(output, like=inputs[0])
        if return_attention_scores:
            weights = axes.unfold_weights(weights, inputs[0], inputs[1])
            return output, ops.cast(weights, self.compute_dtype)
        return output

    def attend_tokens(
        self,
        query,
        value,
        query_positions=None,
        key_positions=None,
        attention_mask=None,
        training=None,
        query_segment_ids=None,
        key_segment_ids=None,
        offset=None,
    ):
        """Applies the layer to inputs that a block has already prepared.

        Blocks zero masked inputs and compute positions themselves; this method
        skips both.

        Args:
            query: float (B, T, D), finite in masked rows.
            value: float (B, S, D'), finite in masked rows; also the keys.
            query_positions: int32 (B, T), -1 = no token, or None: no padding.
            key_positions: int32 (B, S), same for keys.
            attention_mask: bool, (T, S), (B, T, S) or (B, N, T, S), or None.
            training: bool. Whether to apply dropout.
            query_segment_ids: int32 (B, T), as in a call, or None.
            key_segment_ids: int32 (B, S), same for keys.
            offset: int. As in `keras_attn.ops.Visibility`, or None.

        Returns:
            Float (B, T, D).
        """
        visibility = make_visibility(
            ops.shape(query)[1],
            ops.shape(value)[1],
            query_positions=query_positions,
            key_positions=key_positions,
            query_segment_ids=query_segment_ids,
            key_segment_ids=key_segment_ids,
            attention_mask=attention_mask,
            causal=self.causal,
            window=self.sliding_window,
            relative=self.attention_position is not None,
            offset=offset,
        )
        return self.attend_streams(value, [(query, visibility)], training)[0]

    def attend_streams(self, value, streams, training=None):
        """Attends from several streams of queries to the same keys.

        Like `attend_tokens`, with the visibility given by the caller.

        Args:
            value: float (B, S, D'), finite in masked rows; also the keys.
            streams: list of pairs of queries, float (B, T, D), finite in masked
                rows, and their `Visibility`. All have the same key positions.
            training: bool. Whether to apply dropout.

        Returns:
            List of float (B, T, D), one per stream.
        """
        _, first = streams[0]
        memory = self._keys_and_values(value, value, first.key_positions)
        outputs = []
        for query, visibility in streams:
            heads = apply_dense(self._query_dense, query)
            heads = self._rotated(heads, visibility.query_positions), *memory
            output, _ = self._attend(query, heads, visibility, training)
            outputs.append(output)
        return outputs

    def _attend(
        self,
        inputs,
        heads,
        visibility,
        training=False,
        return_weights=False,
    ):
        """Computes output and weights from sanitized inputs and their heads."""
        query, key, value = heads
        bias = None
        if self.attention_position is not None:
            query, bias = self.attention_position.relate(
                query, visibility, ops.shape(key)[1]
            )
        dropout = None
        if training and self.dropout:
            dropout = WeightDropout(self.dropout, self._dropout_layer.draw())
        weights = None
        captured = capturing(self.path)
        kernel = {None: None, True: "fused", False: "plain"}
        kernel = None if captured else kernel[self.flash_attention]
        output = attend_sanitized(
            query,
            key,
            value,
            visibility,
            bias=bias,
            dropout=dropout,
            return_weights=return_weights or captured,
            kernel=kernel,
            # Without an attention mask, rows are masked in all heads alike and
            # are zeroed below, after the output bias.
            zero_fully_masked=visibility.attention_mask is not None,
        )
        if return_weights or captured:
            output, weights = output
        if captured:
            record(self.path, weights)
        if self.use_gate:
            output = output * apply_dense(self._gate_dense, inputs)
        output = apply_dense(self._output_dense, output, contracted=2)
        seen = has_visible_key(
            visibility, ops.shape(query)[1], ops.shape(key)[1]
        )
        if seen is not None:
            trailing = (None,) * (len(output.shape) - 2)
            output = ops.where(seen[(..., *trailing)], output, 0)
        return output, weights

    def compute_output_spec(
        self,
        query,
        value,
        key=None,
        return_attention_scores=False,
        **kwargs,
    ):
        """Returns the symbolic output, and the weights if requested."""
        shape = self.compute_output_shape(
            query.shape, value.shape, None if key is None else key.shape
        )
        output = keras.KerasTensor(shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        axes = self._axes
        weights = (
            *[query.shape[axis] for axis in axes.others],
            self.num_heads,
            *[query.shape[axis] for axis in axes.axes],
            *[value.shape[axis] for axis in axes.axes],
        )
        return output, keras.KerasTensor(weights, dtype=self.compute_dtype)
