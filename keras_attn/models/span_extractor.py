"""Extractive question answering."""

from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import bool_mask
from keras_attn.layers import Dropout
from keras_attn.models.best_spans import best_spans
from keras_attn.models.encoder_parts import (
    check_encoder,
    encoded_shape,
    encoder_specs,
    with_encoder,
)
from keras_attn.models.head_transform import make_transform
from keras_attn.models.input_checks import CheckedModel
from keras_attn.models.layout import CLASSIFIER, check_rules, layout_map_method
from keras_attn.models.packing import refuse_packing
from keras_attn.ops.scores import widened
from keras_attn.typing import Nest, Tensor

if TYPE_CHECKING:
    from keras_attn.models.best_spans import Spans


_MASKED_LOGIT = -1e9


@keras.saving.register_keras_serializable(package="keras_attn")
class SpanExtractor(CheckedModel):
    """Predicts the first and the last token of an answer.

        start, end = Dropout(Encoder(x)) W,    p(i) = softmax(start)[i]

    over the tokens that an answer may contain and one additional first
    position, "no answer", whose two logits are computed from the mean of the
    tokens. With `no_answer="first"` there is no additional position: the first
    token of every row, BERT's `[CLS]`, takes this role (Devlin et al. 2019,
    sec. 4.2 and 4.3, https://arxiv.org/abs/1810.04805).

    Trained with `SequenceCrossentropy(pad_id=-1)` on labels int32 (B, 2): the
    positions of the first and of the last token, counted from 1, or, with
    `no_answer="first"`, from 0; (0, 0) for "no answer".

    Args:
        encoder: `Encoder`, or another model with `encode`, `check_inputs` and
            `hidden_dim`.
        dropout: float in [0, 1). On the encoder's outputs. Default 0.1.
        no_answer: `"mean"` or `"first"`: how "no answer" is represented.
        transform: bool. Whether the vectors of tokens first go through the
            transform of masked language modeling, LayerNorm(f(h W + b)), as in
            `BertPretrainer` and ModernBERT. Default False.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: as for the encoder; as a dict, it may have bool (B, T) as
            `"answerable"`: True at tokens that an answer may contain. Default:
            all except padding.
        training: bool. Whether to apply dropout.

    Returns:
        Float32 (B, 2, 1 + T): start and end logits, those of "no answer" first;
        -1e9 at tokens that no answer may contain. With `no_answer="first"`
        (B, 2, T).

    Raises:
        ValueError: as for the encoder; arguments out of range; or an
            `"answerable"` mask of the wrong shape.

    Examples:
        >>> encoder = keras_attn.models.Encoder(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> model = keras_attn.models.SpanExtractor(encoder)
        >>> tuple(model(np.array([[7, 8, 9, 0]])).shape)
        (1, 2, 5)
    """

    get_layout_map: Any = layout_map_method(CLASSIFIER)

    def __init__(
        self,
        encoder: keras.Model,
        dropout: float = 0.1,
        no_answer: str = "mean",
        transform: bool = False,
        **kwargs: Any,
    ) -> None:
        check_encoder(encoder)
        checks.choice("no_answer", no_answer, ("mean", "first"))
        checks.fraction("dropout", dropout)
        checks.boolean("transform", transform)
        super().__init__(**kwargs)
        self.encoder = encoder
        self.dropout = dropout
        self.transform = transform
        self.no_answer = no_answer
        self._transform_dense = self._transform_norm = None
        if transform:
            self._transform_dense, self._transform_norm = make_transform(
                encoder, encoder.hidden_dim, self.dtype_policy
            )
        self._dropout_layer = Dropout(dropout, dtype=self.dtype_policy)
        self._token_dense = keras.layers.Dense(
            2, dtype=self.dtype_policy, name="token"
        )
        self._token_dense.build((None, None, encoder.hidden_dim))
        self._none_dense = None
        if no_answer == "mean":
            self._none_dense = keras.layers.Dense(
                2, dtype=self.dtype_policy, name="no_answer"
            )
            self._none_dense.build((None, encoder.hidden_dim))
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        inputs, answerable = self._parts(inputs)
        x, positions = self.encoder.encode(inputs, training=training)
        if self.transform:
            x = self._transform_norm(self._transform_dense(x))
        x = self._dropout_layer(x, training=training)
        allowed = token_mask = positions >= 0
        if answerable is not None:
            answerable = bool_mask("answerable", answerable)
            allowed = ops.logical_and(token_mask, answerable)
            if self.no_answer == "first":
                allowed = ops.logical_or(allowed, positions == 0)
        logits = widened(self._token_dense(x))
        logits = ops.where(allowed[..., None], logits, _MASKED_LOGIT)
        if self._none_dense is not None:
            none = self._none_dense(self._mean(x, token_mask))
            logits = ops.concatenate([widened(none)[:, None], logits], axis=1)
        return ops.transpose(logits, (0, 2, 1))

    if TYPE_CHECKING:
        __call__ = call

    @staticmethod
    def _mean(x, token_mask):
        # In float32: bfloat16 represents integers exactly only up to 256.
        tokens = ops.where(token_mask[..., None], widened(x), 0)
        count = ops.sum(
            ops.cast(token_mask, tokens.dtype), axis=1, keepdims=True
        )
        return ops.sum(tokens, axis=1) / ops.maximum(count, 1)

    def extract(
        self,
        inputs: Nest,
        max_answer_length: int | None = None,
        batch_size: int = 32,
        verbose: int = 0,
    ) -> "Spans":
        """Finds the best answer of every row.

        Args:
            inputs: as for a call, arrays of B rows.
            max_answer_length: int >= 1. The longest answer, in tokens.
                Default: no limit.
            batch_size: int. Rows encoded together.
            verbose: as for `keras.Model.predict`.

        Returns:
            `Spans` of NumPy arrays, as `best_spans` returns them.
        """
        if not isinstance(inputs, (list, tuple, dict)):
            checks.tensor("inputs", inputs, "arrays of token ids")
        checks.positive_int("batch_size", batch_size, most=None)
        logits = self.predict(inputs, batch_size=batch_size, verbose=verbose)
        spans = best_spans(logits, max_answer_length)
        if self.no_answer == "mean":
            return spans
        # `best_spans` counts from the token after the first one.
        start, end = (
            np.where(part >= 0, part + 1, part)
            for part in (spans.start, spans.end)
        )
        return spans._replace(start=start, end=end)

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return encoder_specs(self.encoder)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        rest, answerable = self._parts(inputs)
        refuse_packing(rest, "there is one answer per row")
        rest = self.encoder.check_inputs(rest)
        if answerable is None:
            return rest
        expected = encoded_shape(
            self.encoder,
            {name: tuple(part.shape) for name, part in rest.items()},
        )[:2]
        if not checks.fits(tuple(answerable.shape), tuple(expected)):
            raise ValueError(
                f"`answerable` must have shape {tuple(expected)}, True at "
                "tokens that an answer may contain. "
                f"Received: shape {tuple(answerable.shape)}"
            )
        return {**rest, "answerable": answerable}

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        if isinstance(inputs_shape, dict):
            inputs_shape = dict(inputs_shape)
            inputs_shape.pop("answerable", None)
        rows, length = encoded_shape(self.encoder, inputs_shape)[:2]
        if self.no_answer == "first" or length is None:
            return rows, 2, length
        return rows, 2, length + 1

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "dropout": self.dropout,
            "transform": self.transform,
            "no_answer": self.no_answer,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its encoder."""
        return super().from_config(with_encoder(config))

    @staticmethod
    def _parts(inputs):
        """Returns the encoder's inputs, and the answerable mask or None."""
        if not isinstance(inputs, dict):
            return inputs, None
        rest = dict(inputs)
        answerable = rest.pop("answerable", None)
        return rest, answerable
