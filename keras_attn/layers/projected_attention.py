"""Projections of an attention layer and their configuration."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import apply_dense, apply_fused_qkv, fused_qkv
from keras_attn.layers.attention_axes import AttentionAxes
from keras_attn.layers.attention_position import (
    check_position,
    serialized_position,
    with_position,
)
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.layers.rematerialized import Rematerialized
from keras_attn.ops.positions import default_positions


class ProjectedAttention(QuantizedParts, Rematerialized):
    """Projects queries, keys and values to heads, and heads to the output.

    Abstract: `MultiHeadAttention` implements the attention between the
    projections and documents the arguments. The projections have the attributes
    and names of `keras.layers.MultiHeadAttention`, so that its weights load.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_shape=None,
        attention_axes=None,
        sliding_window=None,
        flash_attention=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        use_gate=False,
        seed=None,
        num_key_value_heads=None,
        causal=False,
        attention_position=None,
        **kwargs,
    ):
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
        if flash_attention and dropout:
            raise ValueError(
                "Dropout is not supported when flash attention is enabled: "
                "set `dropout=0.0` or `flash_attention=None`. "
                f"Received: dropout={dropout}"
            )
        if attention_position is not None:
            check_position(attention_position).check(num_heads, key_dim)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self._output_shape = _as_tuple("output_shape", output_shape)
        self._attention_axes = _as_tuple("attention_axes", attention_axes)
        self.sliding_window = sliding_window
        self.flash_attention = flash_attention
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        # Not the attribute that Keras reads: the projections already regularize
        # their outputs.
        self._activity_regularizer = keras.regularizers.get(
            activity_regularizer
        )
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.use_gate = use_gate
        self.seed = seed
        self.num_key_value_heads = num_key_value_heads
        self.causal = causal
        self.attention_position = attention_position

    @property
    def attention_axes(self):
        """The attention axes, non-negative once the layer is built."""
        return self._attention_axes

    # Keras's layer saves its weights under these four names.
    @property
    def query_dense(self):
        """The projection of the queries."""
        return self._query_dense

    @property
    def key_dense(self):
        """The projection of the keys."""
        return self._key_dense

    @property
    def value_dense(self):
        """The projection of the values."""
        return self._value_dense

    @property
    def output_dense(self):
        """The projection of the heads."""
        return self._output_dense

    # Read by subclasses and tests of Keras's layer.
    @property
    def _sliding_window(self):
        return self.sliding_window

    def build(self, query_shape, value_shape, key_shape=None):
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

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        """Returns the shape of the output."""
        key_shape = value_shape if key_shape is None else key_shape
        self._check_shapes(query_shape, value_shape, key_shape)
        features = self._output_shape or (query_shape[-1],)
        return (*query_shape[:-1], *features)

    def _heads(self, query, key, value, query_positions, key_positions):
        """Returns queries, keys and values by head."""
        query = apply_dense(self._query_dense, query)
        key, value = self._keys_and_values(key, value, key_positions)
        return self._rotated(query, query_positions), key, value

    def prepare_weights(self):
        """Returns the joined projections of self-attention, for decode steps.

        Returns:
            `weights` of `decode_step`: float (D, F) and (F,), or ().
        """
        return fused_qkv(self._projections)

    @property
    def _projections(self):
        return [self._query_dense, self._key_dense, self._value_dense]

    def _own_heads(self, inputs, positions, joined):
        """Returns queries, keys and values by head, for self-attention."""
        if not joined:
            return self._heads(inputs, inputs, inputs, positions, positions)
        query, key, value = apply_fused_qkv(joined, self._projections, inputs)
        query, key = (self._rotated(x, positions) for x in (query, key))
        return query, key, value

    def _keys_and_values(self, key, value, positions):
        key = apply_dense(self._key_dense, key)
        value = apply_dense(self._value_dense, value)
        return self._rotated(key, positions), value

    def _rotated(self, heads, positions):
        if self.attention_position is None:
            return heads
        if positions is None:
            positions = default_positions(ops.shape(heads)[1])
        return self.attention_position.rotate(heads, positions)

    def _projection(self, name, features, heads, width, activation=None):
        dense = self._einsum_dense(
            name, "btd,dnh->btnh", (None, heads, width), "nh", activation
        )
        dense.build((None, None, features))
        return dense

    def _einsum_dense(self, name, equation, shape, biased, activation=None):
        dense = keras.layers.EinsumDense(
            equation,
            output_shape=shape,
            activation=activation,
            bias_axes=biased if self.use_bias else None,
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
        # This layer handles the mask; Keras would warn that it is lost.
        dense.supports_masking = True
        return dense

    def get_config(self):
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
    def from_config(cls, config):
        """Creates the layer, including its position."""
        return super().from_config(with_position(config))

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
        if not checks.fits(value_shape[1:-1], key_shape[1:-1]):
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


def _as_tuple(name, value):
    if value is None or value == ():
        return None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, (list, tuple)) and all(
        isinstance(item, int) for item in value
    ):
        return tuple(value)
    raise ValueError(
        f"Invalid `{name}`: `{name}` must be an int, list, or tuple. "
        f"Received: {name}={value!r}"
    )
