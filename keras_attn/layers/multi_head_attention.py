"""Multi-head attention."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.backend import apply_dense, apply_fused_qkv, fused_qkv
from keras_attn.layers.attention_axes import AttentionAxes
from keras_attn.layers.attention_inputs import (
    MASKS,
    TENSORS,
    bool_masks,
    clean,
    read_inputs,
)
from keras_attn.layers.attention_position import (
    check_position,
    serialized_position,
    with_position,
)
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.normalization import make_norm
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.layers.rematerialized import Rematerialized
from keras_attn.ops import Visibility, WeightDropout
from keras_attn.ops.attend import attend_sanitized, is_empty
from keras_attn.ops.capture import capturing, record
from keras_attn.ops.positions import default_positions, sequence_lengths
from keras_attn.ops.visibility import make_visibility
from keras_attn.typing import Initializer, Shape, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.cache.decoding_step import DecodingStep
    from keras_attn.cache.kv_cache import KVCache
    from keras_attn.layers.attention_position import AttentionPosition

QK_NORMS = "head", "all_heads"


@keras.saving.register_keras_serializable(package="keras_attn")
class MultiHeadAttention(QuantizedParts, Rematerialized):
    """Multi-head scaled dot-product attention layer.

        head_n = softmax(Q W_n^Q (K W_n^K)^T / sqrt(H)) V W_n^V
        output = [head_1; ...; head_N] W^O

    Vaswani et al. 2017, sec. 3.2, https://arxiv.org/abs/1706.03762. Their h,
    d_k, d_model are N, H, D here. Unlike the paper, biases are on by default.

    Constructor, call and weights match `keras.layers.MultiHeadAttention`: its
    weights load here and give the same output in every row that is not fully
    masked. Intentional differences: every code path applies every mask,
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
        qk_norm: `"head"` or `"all_heads"`. RMS norm of queries and keys before
            their rotation: of each head with one scale (Qwen3, Gemma 3), or of
            all heads together (OLMo 2). Default None: no norm.
        qk_norm_epsilon: float. Added to the mean square in these norms.
        soft_cap: float > 0. Bound c of the scores, c tanh(score / c), as in
            Gemma 2. Default None: no bound.
        use_sinks: bool. One more key per head with a learned score and a value
            of zero, as in gpt-oss. Default False.
        use_qkv_bias: bool. Whether the projections of queries, keys and values
            have biases, as in Qwen 2, whose other layers have none. Default
            None: `use_bias`.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).
        value: float (B, S, D').
        key: float (B, S, D''). Default `value`.
        query_mask: bool (B, T), True for tokens, False for padding. Default:
            the implicit Keras mask of `query`.
        value_mask: bool (B, S), same for `value`.
        key_mask: bool (B, S), same for `key`.
        attention_mask: bool, (T, S), (B, T, S) or (B, N, T, S), True = may
            attend. Like the other masks it may hold 0 and 1 instead, as floats
            only where the values can be read: eagerly and on a CPU.
        return_attention_scores: bool. Also return the attention weights (Keras
            calls them scores). Not with `flash_attention=True`.
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
            the position does not fit the heads, or a float mask may be additive
            (0 and -1e9).

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

    _tensors = TENSORS
    _flags = "return_attention_scores", "use_causal_mask"

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | tuple[int, ...] | None = None,
        attention_axes: int | tuple[int, ...] | None = None,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: int | None = None,
        num_key_value_heads: int | None = None,
        causal: bool = False,
        attention_position: "AttentionPosition | None" = None,
        qk_norm: str | None = None,
        qk_norm_epsilon: float = 1e-6,
        soft_cap: float | None = None,
        use_sinks: bool = False,
        use_qkv_bias: bool | None = None,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("num_heads", num_heads)
        checks.positive_int("key_dim", key_dim)
        if value_dim is not None:
            checks.positive_int("value_dim", value_dim)
        if sliding_window is not None:
            checks.positive_int("sliding_window", sliding_window)
        if num_key_value_heads is None:
            num_key_value_heads = num_heads
        checks.positive_int("num_key_value_heads", num_key_value_heads)
        if num_heads % num_key_value_heads:
            raise ValueError(
                "`num_heads` must be a multiple of `num_key_value_heads`. "
                f"Received: num_heads={num_heads}, "
                f"num_key_value_heads={num_key_value_heads}"
            )
        checks.fraction("dropout", dropout)
        for name, value in (
            ("use_bias", use_bias),
            ("use_gate", use_gate),
            ("causal", causal),
            ("use_sinks", use_sinks),
        ):
            checks.boolean(name, value)
        if use_qkv_bias is not None:
            checks.boolean("use_qkv_bias", use_qkv_bias)
        checks.choice("qk_norm", qk_norm, (None, *QK_NORMS))
        checks.positive("qk_norm_epsilon", qk_norm_epsilon)
        if soft_cap is not None:
            checks.positive("soft_cap", soft_cap)
        checks.seed("seed", seed)
        if flash_attention is not None:
            checks.boolean("flash_attention", flash_attention)
        if flash_attention and dropout:
            raise ValueError(
                "`dropout` is not supported when flash attention is enabled: "
                "set `dropout=0.0` or `flash_attention=None`. "
                f"Received: dropout={dropout}"
            )
        if flash_attention and (soft_cap is not None or use_sinks):
            raise ValueError(
                "`flash_attention` must not be True with `soft_cap` or "
                "`use_sinks`, which only the plain kernel has. Received: "
                f"soft_cap={soft_cap}, use_sinks={use_sinks}"
            )
        if attention_position is not None:
            check_position(attention_position).check(num_heads, key_dim)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim: int = value_dim or key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self._output_shape = _as_tuple("output_shape", output_shape)
        for size in self._output_shape or ():
            checks.positive_int("output_shape", size)
        self._attention_axes = _as_tuple("attention_axes", attention_axes)
        self.sliding_window = sliding_window
        self.flash_attention = flash_attention
        self.kernel_initializer: Initializer = keras.initializers.get(
            kernel_initializer
        )
        self.bias_initializer: Initializer = keras.initializers.get(
            bias_initializer
        )
        self.kernel_regularizer: Any = keras.regularizers.get(
            kernel_regularizer
        )
        self.bias_regularizer: Any = keras.regularizers.get(bias_regularizer)
        # Not the attribute that Keras reads: the projections already regularize
        # their outputs.
        self._activity_regularizer = keras.regularizers.get(
            activity_regularizer
        )
        self.kernel_constraint: Any = keras.constraints.get(kernel_constraint)
        self.bias_constraint: Any = keras.constraints.get(bias_constraint)
        self.use_gate = use_gate
        self.seed = seed
        self.num_key_value_heads = num_key_value_heads
        self.causal = causal
        self.attention_position = attention_position
        self.qk_norm = qk_norm
        self.qk_norm_epsilon = qk_norm_epsilon
        self.soft_cap = soft_cap
        self.use_sinks = use_sinks
        self.use_qkv_bias = use_qkv_bias

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        """Creates the projections."""
        key_shape = value_shape if key_shape is None else key_shape
        self._check_shapes(query_shape, value_shape, key_shape)
        rank = len(query_shape)
        axes = self._attention_axes or tuple(range(1, rank - 1))
        self._attention_axes = tuple(
            axis if axis >= 0 else rank + axis for axis in axes
        )
        self._axes = AttentionAxes(rank, self._attention_axes)
        if (
            self.attention_position is not None
            and len(self._attention_axes) != 1
        ):
            raise ValueError(
                "An `attention_position` needs exactly one attention axis. "
                f"Received: attention_axes={self._attention_axes}"
            )
        self._widths = query_shape[-1], value_shape[-1], key_shape[-1]
        self._query_dense = self._projection(
            "query", query_shape[-1], self.num_heads, self.key_dim
        )
        self._key_dense = self._projection(
            "key", key_shape[-1], self.num_key_value_heads, self.key_dim
        )
        # The gate precedes the value, as in Keras's `get_weights()`.
        if self.use_gate:
            self._gate_dense = self._projection(
                "gate",
                query_shape[-1],
                self.num_heads,
                self.value_dim,
                activation="sigmoid",
            )
        self._value_dense = self._projection(
            "value", value_shape[-1], self.num_key_value_heads, self.value_dim
        )
        features = self._output_shape or (query_shape[-1],)
        letters = "uvwxyz"[: len(features)]
        self._output_dense = self._einsum_dense(
            "attention_output",
            f"btnh,nh{letters}->bt{letters}",
            (None, *features),
            letters,
        )
        self._output_dense.build((None, None, self.num_heads, self.value_dim))
        self._dropout_layer = Dropout(
            self.dropout, dtype=self.dtype_policy, seed=self.seed
        )
        self._query_norm = self._head_norm("query_norm", self.num_heads)
        self._key_norm = self._head_norm("key_norm", self.num_key_value_heads)
        self._sinks = None
        if self.use_sinks:
            self._sinks = self.add_weight(
                name="sinks", shape=(self.num_heads,), initializer="zeros"
            )

    def _head_norm(self, name, heads):
        if self.qk_norm is None:
            return None
        norm = make_norm(
            "rms_norm",
            self.qk_norm_epsilon,
            dtype=self.dtype_policy,
            name=name,
            axis=-1 if self.qk_norm == "head" else (-2, -1),
        )
        norm.build((None, None, heads, self.key_dim))
        return norm

    def _projection(self, name, features, heads, width, activation=None):
        dense = self._einsum_dense(
            name,
            "btd,dnh->btnh",
            (None, heads, width),
            "nh",
            activation,
            use_bias=None if name == "gate" else self.use_qkv_bias,
        )
        dense.build((None, None, features))
        return dense

    def _einsum_dense(
        self, name, equation, shape, biased, activation=None, use_bias=None
    ):
        use_bias = self.use_bias if use_bias is None else use_bias
        dense = keras.layers.EinsumDense(
            equation,
            output_shape=shape,
            activation=activation,
            bias_axes=biased if use_bias else None,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self._activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            dtype=self.dtype_policy,
            name=name,
        )
        # This layer handles the mask; Keras would warn that it is lost
        # (as of Keras 3.15.1).
        dense.supports_masking = True
        return dense

    def call(
        self,
        query: TensorLike,
        value: TensorLike,
        key: TensorLike | None = None,
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
        query_positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        query_segment_ids: TensorLike | None = None,
        key_segment_ids: TensorLike | None = None,
    ) -> Tensor:
        """Applies the layer; the class docstring lists the arguments."""
        self._check_scores(return_attention_scores)
        axes = self._axes
        causal = self.causal or use_causal_mask
        if causal and len(axes.axes) != 1:
            raise ValueError(
                "Causal attention needs exactly one attention axis. "
                f"Received: attention_axes={axes.axes}"
            )
        inputs = query, value, value if key is None else key
        self._check_shapes(*(x.shape for x in inputs))
        for name, x in zip(("query", "value", "key"), inputs, strict=True):
            checks.floats(name, x)
        # One batch and one length axis from here on: (B, T, D), (B, S, D').
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
        query_lengths, key_lengths = self._lengths(visibility, query, key)
        heads = (
            self._query_heads(query, visibility.query_positions, query_lengths),
            *self._key_value_heads(
                key, value, visibility.key_positions, key_lengths
            ),
        )
        output, weights = self._attend(
            query, heads, visibility, training, return_attention_scores
        )
        output = axes.unfold(output, like=inputs[0])
        if return_attention_scores:
            weights = axes.unfold_weights(weights, inputs[0], inputs[1])
            return output, ops.cast(weights, self.compute_dtype)
        return output

    if TYPE_CHECKING:
        __call__ = call

    def _check_scores(self, return_attention_scores):
        if return_attention_scores and self.flash_attention:
            raise ValueError(
                "`return_attention_scores` must be False in a layer with "
                "`flash_attention=True`, because the fused kernel computes no "
                "weights: construct it with `flash_attention=None`. Received: "
                f"return_attention_scores={return_attention_scores!r}"
            )

    def _query_heads(self, query, positions, lengths=None):
        query = apply_dense(self._query_dense, query)  # (B, T, N, H)
        return self._encoded(query, self._query_norm, positions, lengths)

    def _key_value_heads(self, key, value, positions, lengths=None):
        key = apply_dense(self._key_dense, key)  # (B, S, K, H)
        value = apply_dense(self._value_dense, value)  # (B, S, K, W)
        key = self._encoded(key, self._key_norm, positions, lengths)
        return key, value

    def _encoded(self, heads, norm, positions, lengths):
        """Returns normalized and rotated queries or keys."""
        if norm is not None:
            heads = norm(heads)
        if self.attention_position is None:
            return heads
        if positions is None:
            positions = default_positions(ops.shape(heads)[1])
        if lengths is None:
            return self.attention_position.rotate(heads, positions)
        return self.attention_position.rotate(heads, positions, lengths=lengths)

    @property
    def _depends_on_length(self):
        position = self.attention_position
        return position is not None and position.depends_on_length

    def _lengths(self, visibility, query, key):
        """Returns the lengths of the sequences of queries and keys, or None.

        Args:
            visibility: `Visibility`.
            query: float (B, T, D).
            key: float (B, S, D').

        Returns:
            Two int32 (B, T) and (B, S), size-1 axes allowed; or two None if the
            position does not depend on them.
        """
        if not self._depends_on_length:
            return None, None
        v = visibility
        query_positions, key_positions = (
            default_positions(ops.shape(x)[1]) if given is None else given
            for x, given in ((query, v.query_positions), (key, v.key_positions))
        )
        if v.query_segment_ids is not None:
            return (
                sequence_lengths(query_positions, v.query_segment_ids),
                sequence_lengths(key_positions, v.key_segment_ids),
            )
        # Queries and keys are parts of one sequence.
        lengths = ops.maximum(
            sequence_lengths(query_positions), sequence_lengths(key_positions)
        )
        return lengths, lengths

    def _attend(
        self,
        inputs,
        heads,
        visibility,
        training=False,
        return_weights=False,
    ):
        """Returns the output (B, T, D) and the weights, or None.

        Args:
            inputs: float (B, T, D), the queries before their projection.
            heads: query (B, T, N, H), key (B, S, K, H), value (B, S, K, W).
            visibility: `Visibility`.
            training: bool. Whether to apply dropout.
            return_weights: bool. Whether to return the weights (B, N, T, S).
        """
        query, key, value = heads
        bias = None
        if self.attention_position is not None and not is_empty(query, key):
            query, bias = self.attention_position.relate(
                query, visibility, ops.shape(key)[1]
            )
        dropout = None
        if training and self.dropout:
            dropout = WeightDropout(self.dropout, self._dropout_layer.draw())
        captured = capturing(self.path)
        kernel = {None: None, True: "fused", False: "plain"}
        attended = attend_sanitized(
            query,
            key,
            value,
            visibility,
            bias=bias,
            dropout=dropout,
            return_weights=return_weights or captured,
            kernel=None if captured else kernel[self.flash_attention],
            # Without an attention mask, rows are masked in all heads alike and
            # are zeroed below, after the output bias.
            zero_fully_masked=visibility.attention_mask is not None,
            return_sees_key=True,
            soft_cap=self.soft_cap,
            sinks=None
            if self._sinks is None
            else ops.convert_to_tensor(self._sinks),
        )
        if captured:
            record(self.path, attended.weights, (query, key))
        output = attended.output  # (B, T, N, W)
        if self.use_gate:
            output = output * apply_dense(self._gate_dense, inputs)
        output = apply_dense(self._output_dense, output, contracted=2)
        if attended.sees_key is not None:
            features = (None,) * (len(output.shape) - 2)
            sees_key = attended.sees_key[(..., *features)]  # (B, T, 1, ...)
            output = ops.where(sees_key, output, 0)
        return output, attended.weights

    def attend_tokens(
        self,
        query: TensorLike,
        value: TensorLike,
        query_positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        training: bool | None = None,
        query_segment_ids: TensorLike | None = None,
        key_segment_ids: TensorLike | None = None,
        offset: int | None = None,
    ) -> Tensor:
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

    def attend_streams(
        self,
        value: TensorLike,
        streams: Sequence[tuple[Any, Any]],
        training: bool | None = None,
    ) -> list[Tensor]:
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
        queries, first = streams[0]
        _, lengths = self._lengths(first, queries, value)
        keys_and_values = self._key_value_heads(
            value, value, first.key_positions, lengths
        )
        outputs = []
        for query, visibility in streams:
            lengths, _ = self._lengths(visibility, query, value)
            heads = self._query_heads(
                query, visibility.query_positions, lengths
            )
            output, _ = self._attend(
                query, (heads, *keys_and_values), visibility, training
            )
            outputs.append(output)
        return outputs

    def prepare_weights(self) -> Tensor:
        """Fuses the projections of self-attention, for many decoding steps.

        Returns:
            Float (D, F) and (F,), or () if they cannot be fused. A
            `keras_attn.cache.DecodingStep` passes them to `decode_step`.
        """
        return fused_qkv(self._projections)

    @property
    def _projections(self):
        return [self._query_dense, self._key_dense, self._value_dense]

    def decode_step(
        self,
        inputs: TensorLike,
        cache: "KVCache",
        layer: int,
        step: "DecodingStep",
    ) -> "tuple[Tensor, KVCache]":
        """Attends from new tokens to all cached ones, including themselves.

        Args:
            inputs: float (R, T, D), the new tokens.
            cache: `KVCache`, consumed.
            layer: int. Index of the layer in the cache.
            step: `keras_attn.cache.DecodingStep`.

        Returns:
            Float (R, T, D) and the cache.
        """
        rows, length, _ = ops.shape(inputs)
        lengths = None
        if self._depends_on_length:
            lengths = step.lengths
            if isinstance(lengths, tuple):
                lengths = sequence_lengths(step.positions)
            lengths = ops.broadcast_to(lengths, ops.shape(step.positions))
            _, lengths = _by_source(cache, inputs, lengths)
        inputs, positions = _by_source(cache, inputs, step.positions)
        weights = step.weights[layer] if step.weights else ()
        if weights:
            query, key, value = apply_fused_qkv(
                weights, self._projections, inputs
            )
            query, key = (
                self._encoded(x, norm, positions, lengths)
                for x, norm in (
                    (query, self._query_norm),
                    (key, self._key_norm),
                )
            )
        else:
            query = self._query_heads(inputs, positions, lengths)
            key, value = self._key_value_heads(
                inputs, inputs, positions, lengths
            )
        cache = kv.append(cache, layer, key, value)
        output = self._attend_to_cached(
            inputs, query, positions, None, cache, layer, length
        )
        return _by_hypothesis(output, rows, length), cache

    def attend_to_cache(
        self,
        inputs: TensorLike,
        positions: TensorLike,
        order: TensorLike,
        cache: "KVCache",
        layer: int,
    ) -> Tensor:
        """Attends to cached tokens without appending to the cache.

        Args:
            inputs: float (R, T, D).
            positions: int32 (R, T), positions of the queries.
            order: int32 (R, T). A query sees the tokens up to this position.
            cache: `KVCache`, read only.
            layer: int. Index of the layer in the cache.

        Returns:
            Float (R, T, D).
        """
        rows, length, _ = ops.shape(inputs)
        lengths = None
        if self._depends_on_length:
            lengths = ops.maximum(positions, order) + 1
            _, lengths = _by_source(cache, inputs, lengths)
        _, order = _by_source(cache, inputs, order)
        inputs, positions = _by_source(cache, inputs, positions)
        query = self._query_heads(inputs, positions, lengths)
        output = self._attend_to_cached(
            inputs, query, positions, order, cache, layer, length
        )
        return _by_hypothesis(output, rows, length)

    def _attend_to_cached(
        self, inputs, query, positions, order, cache, layer, length
    ):
        key, value, key_positions = kv.read(
            cache, layer, self.num_key_value_heads
        )
        visibility = Visibility(
            query_positions=positions,
            key_positions=key_positions,
            query_order=order,
            key_order=None if order is None else key_positions,
            attention_mask=kv.beam_mask(cache, length, layer),
            causal=True,
            window=self.sliding_window,
            padding="any",
        )
        output, _ = self._attend(inputs, (query, key, value), visibility)
        return output

    def project_memory(
        self, memory: TensorLike, positions: TensorLike
    ) -> tuple[Tensor, Tensor]:
        """Projects keys and values once for all steps of a decoder.

        Args:
            memory: float (B, S, D').
            positions: int32 (B, S), -1 = no token.

        Returns:
            Keys (B, S, K, H) and values (B, S, K, W).

        Raises:
            ValueError: the position depends on the length of the sequence.
        """
        if self._depends_on_length:
            raise ValueError(
                "`attention_position` must not depend on the length of the "
                "sequence, because a memory is projected once. "
                f"Received: {type(self.attention_position).__name__} with "
                "depends_on_length=True"
            )
        memory = clean(memory, positions)
        return self._key_value_heads(memory, memory, positions)

    def attend_memory(
        self,
        inputs: TensorLike,
        memory: "KVCache",
        layer: int,
        positions: TensorLike | None = None,
    ) -> Tensor:
        """Attends from new tokens to a projected memory.

        The memory has one row per source. If the inputs have several rows per
        source (its beams), these become queries of that row: the memory is not
        copied.

        Args:
            inputs: float (R, T, D), R a multiple of the memory's rows B.
            memory: `KVCache` of the memory, read only.
            layer: int. Index of the layer in the memory.
            positions: int32 (R, T), positions of the new tokens. Required if
                the layer has an `attention_position`.

        Returns:
            Float (R, T, D).

        Raises:
            ValueError: the layer has an `attention_position` and `positions`
                is None.
        """
        if self.attention_position is not None and positions is None:
            raise ValueError(
                "`positions` must be given if the attention layer has an "
                "`attention_position`. Received: positions=None"
            )
        key, value, key_positions = kv.read(
            memory, layer, self.num_key_value_heads
        )
        rows, length, _ = ops.shape(inputs)
        inputs, positions = _by_source(memory, inputs, positions)
        visibility = Visibility(
            query_positions=positions,
            key_positions=key_positions,
            padding="any",
        )
        heads = self._query_heads(inputs, positions), key, value
        output, _ = self._attend(inputs, heads, visibility)
        return _by_hypothesis(output, rows, length)

    def compute_output_shape(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> Shape:
        """Returns the shape of the output."""
        key_shape = value_shape if key_shape is None else key_shape
        self._check_shapes(query_shape, value_shape, key_shape)
        features = self._output_shape or (query_shape[-1],)
        return (*query_shape[:-1], *features)

    def compute_output_spec(
        self,
        query: TensorLike,
        value: TensorLike,
        key: TensorLike | None = None,
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
        query_positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        query_segment_ids: TensorLike | None = None,
        key_segment_ids: TensorLike | None = None,
    ) -> Any:
        """Returns the symbolic output, and the weights if requested."""
        self._check_scores(return_attention_scores)
        bool_masks(MASKS, (query_mask, value_mask, key_mask, attention_mask))
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

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "num_heads",
            "key_dim",
            "value_dim",
            "dropout",
            "use_bias",
            "sliding_window",
            "flash_attention",
            "use_gate",
            "seed",
            "num_key_value_heads",
            "causal",
            "qk_norm",
            "qk_norm_epsilon",
            "soft_cap",
            "use_sinks",
            "use_qkv_bias",
        ):
            config[name] = getattr(self, name)
        config["output_shape"] = self._output_shape
        config["attention_axes"] = self._attention_axes
        for kind, module in (
            ("initializer", keras.initializers),
            ("regularizer", keras.regularizers),
            ("constraint", keras.constraints),
        ):
            for part in ("kernel", "bias"):
                name = f"{part}_{kind}"
                config[name] = module.serialize(getattr(self, name))
        config["activity_regularizer"] = keras.regularizers.serialize(
            self._activity_regularizer
        )
        config["attention_position"] = serialized_position(
            self.attention_position
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the layer, including its position."""
        return super().from_config(with_position(config))

    @property
    def attention_axes(self) -> int | tuple[int, ...] | None:
        """The attention axes, non-negative once the layer is built."""
        return self._attention_axes

    # Keras's layer saves its weights under these four names.
    @property
    def query_dense(self) -> keras.layers.EinsumDense:
        """The projection of the queries."""
        return self._query_dense

    @property
    def key_dense(self) -> keras.layers.EinsumDense:
        """The projection of the keys."""
        return self._key_dense

    @property
    def value_dense(self) -> keras.layers.EinsumDense:
        """The projection of the values."""
        return self._value_dense

    @property
    def output_dense(self) -> keras.layers.EinsumDense:
        """The projection of the heads."""
        return self._output_dense

    # Read by subclasses and tests of Keras's layer, as of Keras 3.15.1.
    @property
    def _sliding_window(self):
        return self.sliding_window

    def _check_shapes(self, query_shape, value_shape, key_shape):
        query_shape, value_shape, key_shape = shapes = (
            tuple(query_shape),
            tuple(value_shape),
            tuple(key_shape),
        )
        if len({len(shape) for shape in shapes}) > 1 or len(query_shape) < 3:
            raise ValueError(
                "`query`, `value` and `key` must have the same rank: all three "
                "must be equal, and at least 3, for (batch, length, features). "
                f"Received: {query_shape}, {value_shape}, {key_shape}"
            )
        if not checks.fits(value_shape[:-1], key_shape[:-1]):
            raise ValueError(
                "All dimensions of `value` and `key`, except the last one, "
                f"must be equal. Received: value_shape={value_shape} and "
                f"key_shape={key_shape}"
            )
        if not self.built:
            return
        if len(query_shape) != self._axes.rank:
            raise ValueError(
                f"`query` must have rank {self._axes.rank}, as when the layer "
                f"was built. Received: {query_shape}"
            )
        for name, shape, width in zip(
            ("query", "value", "key"), shapes, self._widths, strict=True
        ):
            checks.width(name, shape, width)
            if not checks.fits(
                [shape[axis] for axis in self._axes.others],
                [query_shape[axis] for axis in self._axes.others],
            ):
                raise ValueError(
                    "`query`, `value` and `key` must have the same batch axes. "
                    f"Received: {query_shape}, {value_shape}, {key_shape}"
                )


def _by_source(cache, inputs, positions):
    """Makes the hypotheses of a source queries of one row."""
    sources = kv.sources(cache)
    rows, length, width = ops.shape(inputs)
    queries = rows // sources * length
    if positions is not None:
        positions = ops.reshape(positions, (sources, queries))  # (B, k T)
    inputs = ops.reshape(inputs, (sources, queries, width))  # (B, k T, D)
    return inputs, positions


def _by_hypothesis(output, rows, length):
    """Gives each hypothesis its own row again, the inverse of `_by_source`."""
    features = ops.shape(output)[2:]
    return ops.reshape(output, (rows, length, *features))  # (R, T, D)


def _as_tuple(name, value):
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return None
    items = value if isinstance(value, (list, tuple)) else (value,)
    if all(isinstance(i, int) and not isinstance(i, bool) for i in items):
        return tuple(items)
    raise ValueError(
        f"Invalid `{name}`: `{name}` must be an int, list, or tuple. "
        f"Received: {name}={value!r}"
    )
