"""Sinusoidal and learned positional embeddings."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import (
    TorchNames,
    bool_mask,
    concrete,
    gather_rows,
    known_size,
    nan_where,
)
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.ops import positions_from_mask, sinusoid
from keras_attn.ops.positions import default_positions
from keras_attn.ops.visibility import implicit_mask
from keras_attn.typing import Initializer, Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class PositionalEmbedding(CheckedCall, TorchNames, keras.layers.Layer):
    """Adds a positional embedding to the inputs.

        PE[p, 2i] = sin(p / 10000^(2i / D))
        PE[p, 2i + 1] = cos(p / 10000^(2i / D))

    Sinusoidal (Vaswani et al. 2017, sec. 3.5,
    https://arxiv.org/abs/1706.03762). Learned: PE[p] is row p of a table
    (Gehring et al. 2017, https://arxiv.org/abs/1705.03122).

    Args:
        kind: `"sinusoidal"` or `"learned"`.
        layout: `"interleaved"`, alternating sine and cosine as in the formula,
            or `"halves"`, all sines followed by all cosines.
        max_sequence_length: int. Rows of the learned table, in tokens. Not
            needed for sinusoidal positions.
        initializer: initializer of the learned table.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        inputs: float (B, T, D).
        mask: bool (B, T), True for tokens, False for padding. Default: the
            implicit Keras mask.
        positions: int32 (B, T), in tokens from 0; -1 = no token, to which
            nothing is added. Default: the number of preceding tokens.

    Returns:
        Float (B, T, D): `inputs` + positional embedding. The sum is rounded
        once, so positions remain distinct in bfloat16 too.

    Raises:
        ValueError: a learned table has no `max_sequence_length`, a sinusoidal
            encoding has an odd width, `inputs` have another rank or width, or
            positions are not integers or exceed the table. (In a compiled
            function, whose values are not known, rows past the table are NaN.)

    Examples:
        >>> layer = keras_attn.layers.PositionalEmbedding()
        >>> y = layer(keras.ops.zeros((1, 2, 4)))
        >>> keras.ops.convert_to_numpy(y)[0].round(2).tolist()[0]
        [0.0, 1.0, 0.0, 1.0]
    """

    _tensors = "inputs", "mask", "positions"

    def __init__(
        self,
        kind: str = "sinusoidal",
        layout: str = "interleaved",
        max_sequence_length: int | None = None,
        initializer: Initializer = "uniform",
        **kwargs: Any,
    ) -> None:
        checks.choice("kind", kind, ("sinusoidal", "learned"))
        checks.choice("layout", layout, ("interleaved", "halves"))
        if kind == "learned" and max_sequence_length is None:
            raise ValueError(
                "`max_sequence_length` must be given for a learned table. "
                "Received: max_sequence_length=None"
            )
        if max_sequence_length is not None:
            checks.positive_int("max_sequence_length", max_sequence_length)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.kind = kind
        self.layout = layout
        self.max_sequence_length = max_sequence_length
        self.initializer: Initializer = keras.initializers.get(initializer)
        self._table = None

    def build(self, inputs_shape: Shape) -> None:
        """Creates the learned table."""
        self._width = width = inputs_shape[-1]
        if self.kind == "learned":
            # An Embedding instead of a weight of this layer: weights are
            # autocast in `__call__` only (as of Keras 3.15.1), which a decode
            # step does not use.
            self._table = keras.layers.Embedding(
                self.max_sequence_length,
                width,
                embeddings_initializer=self.initializer,
                dtype=self.dtype_policy,
                name="table",
            )
            self._table.build()
        elif width % 2:
            raise ValueError(
                "`inputs` must have an even width, for sines and cosines. "
                f"Received: inputs of shape {tuple(inputs_shape)}"
            )

    def call(
        self,
        inputs: TensorLike,
        mask: TensorLike | None = None,
        positions: TensorLike | None = None,
    ) -> Tensor:
        """Adds the positions; the class docstring lists the arguments."""
        checks.rank("inputs", checks.floats("inputs", inputs), 3)
        checks.width("inputs", inputs.shape, self._width)
        batch, length, _ = inputs.shape
        mask = implicit_mask(inputs) if mask is None else mask
        if mask is not None:
            checks.per_token("mask", mask, batch, length)
            mask = bool_mask("mask", mask)
        if positions is not None:
            checks.integers("positions", positions)
            checks.per_token("positions", positions, batch, length)
        if positions is None and mask is not None:
            positions = positions_from_mask(mask)
        if positions is None:
            positions = default_positions(ops.shape(inputs)[1])
        if self.kind == "sinusoidal":
            encoding = sinusoid(positions, self._width, self.layout)
        else:
            if (known_size(length) or 0) > self.max_sequence_length:
                raise ValueError(
                    "`inputs` must not be longer than the position table of "
                    f"max_sequence_length={self.max_sequence_length} rows. "
                    f"Received: {length} tokens"
                )
            known = concrete(positions)
            if (
                known is not None
                and known.max(initial=-1) >= self.max_sequence_length
            ):
                raise ValueError(
                    "`positions` must be less than "
                    f"max_sequence_length={self.max_sequence_length}, the rows "
                    f"of the table. Received: positions up to {known.max()}"
                )
            rows = positions[..., None]
            last = self.max_sequence_length - 1
            encoding = self._table(ops.clip(positions, 0, last))
            # In a compiled function positions cannot be checked, and backends
            # differ in out-of-range lookups (as of Keras 3.15.1).
            encoding = nan_where(rows > last, encoding)
            encoding = ops.where(rows < 0, 0, encoding)
        return _sum(inputs, encoding)

    if TYPE_CHECKING:
        __call__ = call

    def decode_step(
        self, inputs: TensorLike, positions: TensorLike, length: int
    ) -> Tensor:
        """Adds positional embeddings to new tokens.

        Args:
            inputs: float (R, T, D), the new tokens.
            positions: int32 (R, T), as in a call.
            length: int. Upper bound of the positions, exclusive. Sinusoids are
                looked up in a table of this length.

        Returns:
            Float (R, T, D).
        """
        if self.kind == "learned":
            return self(inputs, positions=positions)
        # Row 0 is for position -1, no token.
        table_positions = ops.arange(length + 1, dtype="int32")[None] - 1
        table = sinusoid(table_positions, inputs.shape[-1], self.layout)[0]
        return _sum(inputs, gather_rows(table, positions + 1))

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        """Returns the shape of the inputs."""
        if self.built:
            checks.width("inputs", inputs_shape, self._width)
        return inputs_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        config.update(
            kind=self.kind,
            layout=self.layout,
            max_sequence_length=self.max_sequence_length,
            initializer=keras.initializers.serialize(self.initializer),
        )
        return config


def _sum(inputs, encoding):
    # Summed in float32 where the encoding is exact, then rounded once.
    total = ops.cast(inputs, encoding.dtype) + encoding
    return ops.cast(total, inputs.dtype)
