"""BERT pretraining: masked LM and next-sentence prediction."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.models.block_stack import BlockStack, make_stack
from keras_attn.models.encoder_parts import (
    check_encoder,
    encoded_shape,
    encoder_specs,
    with_encoder,
)
from keras_attn.models.head_transform import make_transform
from keras_attn.models.input_checks import CheckedModel, check_ids
from keras_attn.models.layout import PRETRAINER, check_rules, layout_map_method
from keras_attn.models.packing import refuse_packing
from keras_attn.typing import Nest, Tensor

if TYPE_CHECKING:
    from keras_attn.models.bert import Bert


@keras.saving.register_keras_serializable(package="keras_attn")
class BertPretrainer(CheckedModel):
    """BERT with the heads of both pretraining tasks.

        token logits = LayerNorm(f(h[p] W + b)) E^T + c,   p a masked position
        next sentence logits = pooled W' + b'

    with the encoder's activation f and token embedding matrix E (Devlin et al.
    2019, sec. 3.1 and A.2, https://arxiv.org/abs/1810.04805). The norm is of
    the kind of the encoder's, and there is no b if the encoder has no biases,
    as in ModernBERT. Class 0 of next-sentence prediction: the second sentence
    follows the first.

    Args:
        encoder: `Bert`, with a pooler if `next_sentence` is True.
        masked_lm: bool. Whether to predict masked tokens. Default True.
        next_sentence: bool. Whether to predict if the second sentence follows
            the first. Default True.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: as for the encoder; as a dict, it may have int32 (B, P) as
            `"mask_positions"`, the positions in [0, T) to predict, which
            avoids computing logits at all the others. Default: all positions.
        training: bool. Whether to apply dropout.

    Returns:
        Dict: float (B, P, V), or (B, T, V), as `"token_logits"`; float (B, 2)
        as `"next_sentence_logits"`.

    Raises:
        ValueError: as for the encoder; no task; `next_sentence` with an encoder
            without a pooler; or masked positions out of range.

    Examples:
        >>> encoder = keras_attn.models.Bert(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> model = keras_attn.models.BertPretrainer(encoder)
        >>> model.compile("adam", {
        ...     "token_logits":
        ...         keras_attn.training.SequenceCrossentropy(pad_id=-1),
        ...     "next_sentence_logits":
        ...         keras.losses.SparseCategoricalCrossentropy(
        ...             from_logits=True)})
        >>> inputs = {
        ...     "token_ids": np.array([[2, 4, 8, 3, 9, 3]]),
        ...     "segment_ids": np.array([[0, 0, 0, 0, 1, 1]]),
        ...     "mask_positions": np.array([[1, 0]])}
        >>> labels = {
        ...     "token_logits": np.array([[7, -1]]),
        ...     "next_sentence_logits": np.array([0])}
        >>> history = model.fit(inputs, labels, verbose=0)
        >>> tuple(model(inputs)["token_logits"].shape)
        (1, 2, 100)
    """

    get_layout_map: Any = layout_map_method(PRETRAINER)

    def __init__(
        self,
        encoder: "Bert",
        masked_lm: bool = True,
        next_sentence: bool = True,
        **kwargs: Any,
    ) -> None:
        check_encoder(encoder)
        checks.boolean("masked_lm", masked_lm)
        checks.boolean("next_sentence", next_sentence)
        if not (masked_lm or next_sentence):
            raise ValueError(
                "`masked_lm` or `next_sentence` must be True. "
                "Received: False for both"
            )
        if next_sentence and not getattr(encoder, "pooler", False):
            raise ValueError(
                "`encoder` must have a pooler if `next_sentence` is True. "
                f"Received: {encoder!r}"
            )
        super().__init__(**kwargs)
        self.encoder = encoder
        self.masked_lm = masked_lm
        self.next_sentence = next_sentence
        dtype = self.dtype_policy
        if masked_lm:
            # That of the embedding matrix.
            width = getattr(encoder, "embedding_dim", None)
            width = width or encoder.hidden_dim
            self._transform_dense, self._norm = make_transform(
                encoder, width, dtype
            )
            self._bias = self.add_weight(
                (encoder.vocabulary_size,),
                initializer="zeros",
                name="token_bias",
            )
        if next_sentence:
            self._next_dense = keras.layers.Dense(
                2, dtype=dtype, name="next_sentence"
            )
            self._next_dense.build((None, encoder.hidden_dim))
        self.built = True
        check_rules(self)

    @property
    def token_bias(self) -> keras.Variable:
        """The bias c of the masked-LM logits."""
        return self._bias

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        inputs, mask_positions = _parts(self.check_inputs(inputs))
        x, positions = self.encoder.encode(inputs, training=training)
        outputs = {}
        if self.masked_lm:
            outputs["token_logits"] = self._token_logits(x, mask_positions)
        if self.next_sentence:
            pooled = self.encoder.pool(x, positions)
            outputs["next_sentence_logits"] = self._next_dense(pooled)
        return outputs

    if TYPE_CHECKING:
        __call__ = call

    def _token_logits(self, x, mask_positions):
        if mask_positions is not None:
            x = ops.take_along_axis(x, mask_positions[..., None], axis=1)
        x = self._norm(self._transform_dense(x))
        logits = self.encoder.token_logits(x)
        return logits + ops.cast(self._bias, logits.dtype)

    def block_stack(self) -> BlockStack:
        """Returns the blocks of the encoder, and the masked-LM head, if any."""

        def output(x):
            return self._token_logits(x, None)

        blocks, normalize, _ = self.encoder.block_stack()
        return make_stack(blocks, normalize, output if self.masked_lm else None)

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return encoder_specs(self.encoder)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        rest, mask_positions = _parts(inputs)
        if self.next_sentence:
            refuse_packing(rest, "next-sentence prediction is one per row")
        rest = self.encoder.check_inputs(rest)
        if mask_positions is None:
            return rest
        rows, length = rest["token_ids"].shape
        mask_positions = check_ids(
            "mask_positions",
            mask_positions,
            length or 2**31,
            ("batch", "count"),
        )
        if not checks.fits((mask_positions.shape[0],), (rows,)):
            raise ValueError(
                f"`mask_positions` must have {rows} rows. "
                f"Received: shape {tuple(mask_positions.shape)}"
            )
        return {**rest, "mask_positions": mask_positions}

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shapes of the outputs."""
        inputs_shape, mask_positions = _parts(inputs_shape)
        rows, length = encoded_shape(self.encoder, inputs_shape)[:2]
        shapes = {}
        if self.masked_lm:
            count = length if mask_positions is None else mask_positions[1]
            size = self.encoder.vocabulary_size
            shapes["token_logits"] = (rows, count, size)
        if self.next_sentence:
            shapes["next_sentence_logits"] = (rows, 2)
        return shapes

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "masked_lm": self.masked_lm,
            "next_sentence": self.next_sentence,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its encoder."""
        return super().from_config(with_encoder(config))


def _parts(inputs):
    """Returns the encoder's inputs, and the masked positions or None."""
    if not isinstance(inputs, dict):
        return inputs, None
    rest = dict(inputs)
    mask_positions = rest.pop("mask_positions", None)
    return rest, mask_positions
