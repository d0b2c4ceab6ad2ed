"""Multi-head attention: many small attentions side by side."""

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
    """Mixes values by softmax similarity of queries and keys, per head.

        head_n = softmax(Q W_n^Q (K W_n^K)^T / sqrt(H)) V W_n^V
        output = [head_1; ...; head_N] W^O

    Vaswani et al. 2017, sec. 3.2, https://arxiv.org/abs/1706.03762. Their h,
    d_k, d_model are N, H, D here. Departure from the paper: biases are on.

    Constructor, call and weights are those of
    `keras.layers.MultiHeadAttention`, whose `get_weights()` load here and give
    the same output on every row that sees something. Different on purpose:
    every mask given is obeyed on every path, the caller's tensors keep their
    masks, and a query that is no token or sees nothing gives exact zeros.

    Args:
        num_heads: int >= 1. N.
        key_dim: int >= 1. H, features per head (not in total).
        value_dim: int >= 1. W, value features per head; default `key_dim`.
        dropout: float in [0, 1). Probability that a weight is dropped.
        use_bias: bool. Biases on the projections. Default True.
        output_shape: int or tuple of int. Features of the output; default D.
        attention_axes: int or tuple of int. Axes attended over; default all
            between the batch and the features.
        sliding_window: int >= 1. Keys this far from the query or further are
            hidden; default None, no window.
        flash_attention: bool. True forces the fused kernel and raises where it
            cannot serve, False the plain one; default None: the fastest.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        kernel_regularizer: regularizer of the kernels.
        bias_regularizer: regularizer of the biases.
        activity_regularizer: regularizer of the projections' outputs.
        kernel_constraint: constraint on the kernels.
        bias_constraint: constraint on the biases.
        use_gate: bool. Multiply the heads by sigmoid(query W^G) first.
        seed: int. Seed of the dropout.
        num_key_value_heads: int dividing N. Heads of keys and values that the
            query heads share; default N (1 is multi-query attention).
        causal: bool. Always hide keys at later positions. Default False.
        attention_position: `AttentionPosition`, such as `RotaryPosition`,
            `ALiBiPosition` or `T5Position`. What the scores know of where
            query and key stand; default None: nothing.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).
        value: float (B, S, D').
        key: float (B, S, D''). Default `value`.
        query_mask: bool (B, T), True where there is a token; default the
            implicit Keras mask of `query`.
        value_mask: bool (B, S), likewise.
        key_mask: bool (B, S), likewise.
        attention_mask: anything castable to bool, (T, S), (B, T, S) or
            (B, N, T, S), True = may attend.
        return_attention_scores: bool. Return the weights too (Keras calls
            them scores).
        training: bool. Whether dropout acts.
        use_causal_mask: bool. Hide later keys in this call.
        query_positions: int32 (B, T), in tokens from 0; -1 = no token.
            Default: the count of tokens before.
        key_positions: int32 (B, S), likewise.
        query_segment_ids: int32 (B, T), an id for each sentence of a packed
            row: it sees only itself, and its positions count from 0.
        key_segment_ids: int32 (B, S), likewise.

    Returns:
        Float (B, T, D), zero where nothing is visible; with
        `return_attention_scores` a pair of it and the weights (B, N, T, S),
        which are those before dropout.

    Raises:
        ValueError: arguments out of range, `num_heads` not a multiple of
            `num_key_value_heads`, ranks or widths that do not fit, causal
            attention or a position over more than one axis, or a position
            that does not fit the heads.

    Masking: reads implicit Keras masks and passes the query's on.
    Cost: 2 B N T S H multiply-adds; (T, S) is held by the plain kernel only.

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
        """Does the work of a call for a block that stands at the door itself.

        A block has cleaned its inputs and knows where their tokens stand; to
        do both again would be waste.

        Args:
            query: float (B, T, D), finite at hidden rows.
            value: float (B, S, D'), likewise; also the keys.
            query_positions: int32 (B, T), -1 = no token, or None: all there.
            key_positions: int32 (B, S), likewise.
            attention_mask: bool, (T, S), (B, T, S) or (B, N, T, S), or None.
            training: bool. Whether dropout acts.
            query_segment_ids: int32 (B, T), as in a call, or None.
            key_segment_ids: int32 (B, S), likewise.
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

        What `attend_tokens` does, for a block that has described who sees whom.

        Args:
            value: float (B, S, D'), finite at hidden rows; also the keys.
            streams: list of pairs: float (B, T, D), likewise, and its
                `Visibility`. The positions of the keys are the same in each.
            training: bool. Whether dropout acts.

        Returns:
            List of float (B, T, D), a stream each.
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
        """Clean inputs and what is projected of them -> output and weights."""
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
            # Zeros would not stay zeros behind the output's bias.
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
        """Returns the symbolic output, and weights where they are asked."""
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
