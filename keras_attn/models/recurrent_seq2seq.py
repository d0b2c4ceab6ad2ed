"""Recurrent encoder-decoder, with or without attention."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import full, uniform
from keras_attn.decoding import DecodingState
from keras_attn.layers import Dropout, ScoredAttention, TokenEmbedding
from keras_attn.layers.dropout_seed import DropoutSeeds
from keras_attn.models.alignment import (
    check_lengths,
    teacher_forced,
    up_to_the_end,
)
from keras_attn.models.bidirectional import Bidirectional
from keras_attn.models.generative_model import GenerativeModel
from keras_attn.models.input_checks import check_pair, ids_spec
from keras_attn.models.layout import (
    RECURRENT,
    check_rules,
    check_sizes,
    layout_map_method,
)
from keras_attn.models.recurrent_checks import check_together
from keras_attn.models.recurrent_decoder import (
    CELLS,
    RecurrentDecoder,
    SamplingDraws,
)
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Nest, Tensor, TensorLike

_LAYERS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


@keras.saving.register_keras_serializable(package="keras_attn")
class RecurrentSeq2Seq(GenerativeModel):
    """Recurrent encoder-decoder with optional attention.

        h[j] = RNN(h[j - 1], E[x[j]])                 the source
        s[i] = RNN(s[i - 1], [E[y[i]]; m[i - 1]])     s[-1]: the last h
        c[i] = sum_j weight[i, j] h[j]                the context
        m[i] = tanh([c[i]; s[i]] W)
        logits[i] = m[i] W' + b

    Without attention this is Sutskever et al. 2014,
    https://arxiv.org/abs/1409.3215: m = s, and the last h is all the decoder
    gets of the source, whatever its length. With attention it is Luong et al.
    2015, sec. 3, https://arxiv.org/abs/1508.04025, with any score, including
    `"additive"` of Bahdanau et al. 2014, https://arxiv.org/abs/1409.0473. The
    decoder reads m[i - 1] only with `input_feeding` (Luong, sec. 3.3).

    Args:
        source_vocabulary_size: int. V of the source. None: the sources are not
            token ids but, for example, images, and a subclass overrides
            `encode`, `read_sources` and `check_inputs`.
        target_vocabulary_size: int. V of the target. None: same as the source.
            Each side has its own matrix E.
        cell: `"lstm"` or `"gru"`.
        num_layers: int. Recurrent layers on each side.
        hidden_dim: int. D, the width of embeddings, states and memory.
        bidirectional: bool. Whether the source is read in both directions, with
            D / 2 features each. Default False.
        attention: None, the name of a score of `ScoredAttention`, or a
            `ScoredAttention` layer, for local or hard attention. Default
            `"additive"`.
        input_feeding: bool. Whether each step reads m of the previous one.
            Default False.
        scheduled_sampling: float in [0, 1], or None. The probability with which
            the decoder, in training, reads a token it has sampled instead of
            the target token (Bengio et al. 2015,
            https://arxiv.org/abs/1506.03099). It is the initial value of the
            variable `sampling_probability`, which a callback may raise. Default
            None: no scheduled sampling.
        dropout: float in [0, 1). On embeddings, between encoder layers and
            before the output layer.
        max_sequence_length: int. The longest sequence, in tokens; required by
            the location score. Default None: no limit.
        pad_id: int. The id of padding tokens, unlike `end_id`.
        start_id: int. First id of every target.
        end_id: int. Last id of every sequence.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: pair of int32 (B, S) source ids and int32 (B, T) target ids,
            the target beginning with `start_id`.
        training: bool. Whether to apply dropout and scheduled sampling.

    Returns:
        Float (B, T, V): logits of the token after each target token.

    Raises:
        ValueError: arguments out of range or incompatible; ids of the wrong
            rank, not integers, or out of range; sequences longer than
            `max_sequence_length`.

    Examples:
        >>> model = keras_attn.models.RecurrentSeq2Seq(
        ...     100, hidden_dim=16, bidirectional=True, attention="general")
        >>> source = np.array([[7, 8, 9, 2]])
        >>> target = np.array([[1, 11, 12]])
        >>> tuple(model((source, target)).shape)
        (1, 3, 100)
    """

    get_layout_map: Any = layout_map_method(RECURRENT, splits_sequences=False)

    def __init__(
        self,
        source_vocabulary_size: int | None,
        target_vocabulary_size: int | None = None,
        cell: str = "lstm",
        num_layers: int = 1,
        hidden_dim: int = 256,
        bidirectional: bool = False,
        attention: "str | ScoredAttention | None" = "additive",
        input_feeding: bool = False,
        scheduled_sampling: float | None = None,
        dropout: float = 0.1,
        max_sequence_length: int | None = None,
        pad_id: int = 0,
        start_id: int = 1,
        end_id: int = 2,
        **kwargs: Any,
    ) -> None:
        if source_vocabulary_size is not None:
            checks.positive_int(
                "source_vocabulary_size", source_vocabulary_size
            )
        if target_vocabulary_size is not None or source_vocabulary_size is None:
            checks.positive_int(
                "target_vocabulary_size", target_vocabulary_size
            )
        checks.choice("cell", cell, tuple(CELLS))
        checks.positive_int("num_layers", num_layers, most=checks.MOST_LAYERS)
        checks.boolean("bidirectional", bidirectional)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.fraction("dropout", dropout)
        if max_sequence_length is not None:
            checks.positive_int("max_sequence_length", max_sequence_length)
        if bidirectional and hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even if `bidirectional` is True. "
                f"Received: hidden_dim={hidden_dim}"
            )
        check_together(
            attention, input_feeding, scheduled_sampling, max_sequence_length
        )
        check_sizes(
            *(
                (name, size, f"{layer}/table/embeddings", 0)
                for name, size, layer in (
                    (
                        "source_vocabulary_size",
                        source_vocabulary_size,
                        "source_embedding",
                    ),
                    (
                        "target_vocabulary_size",
                        target_vocabulary_size,
                        "decoder/token",
                    ),
                )
                if size is not None
            )
        )
        super().__init__(**kwargs)
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size
        self.cell = cell
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.bidirectional = bidirectional
        self.attention = attention
        self.input_feeding = input_feeding
        self.scheduled_sampling = scheduled_sampling
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.pad_id: int = pad_id
        self.start_id: int = start_id
        self.end_id: int = end_id
        self._check_special_ids()
        if source_vocabulary_size is not None:
            self._make_encoder()
        self._make_decoder()
        self.sampling_probability: keras.Variable | None = None
        if scheduled_sampling is not None:
            self.sampling_probability = self.add_weight(
                (),
                initializer=keras.initializers.Constant(scheduled_sampling),
                trainable=False,
                dtype="float32",
                name="sampling_probability",
            )
            self._draws = DropoutSeeds()
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        source_ids, target_ids = self.check_inputs(inputs)
        memory, states = self.encode(source_ids, training=training)
        logits, _, _ = self._decoder.read(
            target_ids,
            self._decoder.start(states),
            self._memory_of(memory),
            training=bool(training),
            sampling=self._sampling_draws(target_ids) if training else None,
        )
        return logits

    if TYPE_CHECKING:
        __call__ = call

    def encode(
        self, source_ids: TensorLike, training: bool | None = None
    ) -> tuple[tuple[Tensor, Tensor], Any]:
        """Encodes the source.

        A model whose sources are not token ids overrides this method,
        `read_sources` and `check_inputs`.

        Args:
            source_ids: int32 (B, S).
            training: bool. Whether to apply dropout.

        Returns:
            Memory: float (B, S, D), and positions, int32 (B, S); and the final
            states, for each layer a tuple of float (B, D).
        """
        token_mask = ops.not_equal(source_ids, self.pad_id)
        x = self._source_embedding(source_ids)
        final_states = []
        for layer in self._encoder_layers:
            x = self._dropout_layer(x, training=training)
            x, *states = layer(x, mask=token_mask, training=training)
            half = len(states) // 2
            if self.bidirectional:
                states = [
                    ops.concatenate(pair, axis=-1)
                    for pair in zip(states[:half], states[half:], strict=True)
                ]
            final_states.append(tuple(states))
        return (x, positions_from_mask(token_mask)), tuple(final_states)

    def start_decoding(
        self, inputs: Nest, max_new_tokens: int
    ) -> DecodingState:
        """Encodes the source.

        Args:
            inputs: int32 (B, S) source ids.
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`.
        """
        inputs = self._check_start(inputs, max_new_tokens)
        memory, states = self.encode(inputs, training=False)
        rows = ops.shape(inputs)[0]
        tokens = full((rows, 1), self.start_id, dtype="int32")
        return DecodingState(
            self._memory_of(memory), self._decoder.start(states), tokens
        )

    def decode_step(
        self, tokens: TensorLike, state: DecodingState
    ) -> tuple[Tensor, DecodingState]:
        """Reads the next tokens of every hypothesis.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, T, V), and the next `DecodingState`.
        """
        self._check_step(tokens, state)
        rows = state.hypothesis.states[0][0].shape[0]
        checks.batch("tokens", tokens.shape, rows)
        logits, _, hypothesis = self._decoder.read(
            tokens, state.hypothesis, state.memory
        )
        return logits, state._replace(hypothesis=hypothesis)

    def align(
        self, inputs: Nest, tokens: TensorLike, lengths: TensorLike
    ) -> Tensor:
        """Returns the attention weights of generated tokens over the source.

        Args:
            inputs: int32 (B, S) source ids.
            tokens: int32 (B, t, L), as generated.
            lengths: int32 (B, t).

        Returns:
            Float32 (B, t, 1, 1, L, S): the weights of the single attention
            layer, zeros past the end.

        Raises:
            ValueError: the model has no attention.
        """
        if self.attention is None:
            raise ValueError(
                "`return_weights` needs a model with attention. "
                "Received: attention=None"
            )
        fed_tokens, state = teacher_forced(self, inputs, tokens)
        check_lengths(lengths, tokens)
        _, weights, _ = self._decoder.read(
            fed_tokens, state.hypothesis, state.memory
        )
        shape = (*tokens.shape[:2], 1, 1, tokens.shape[2], weights.shape[-1])
        weights = ops.reshape(ops.cast(weights, "float32"), shape)
        return up_to_the_end(weights, lengths)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns [source ids, target ids], or raises ValueError."""
        return check_pair(inputs, self._sizes, self.max_sequence_length)

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return [ids_spec(), ids_spec()]

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        return (*inputs_shape[1], self._sizes[1])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "source_vocabulary_size",
            "target_vocabulary_size",
            "cell",
            "num_layers",
            "hidden_dim",
            "bidirectional",
            "attention",
            "input_feeding",
            "scheduled_sampling",
            "dropout",
            "max_sequence_length",
            "pad_id",
            "start_id",
            "end_id",
        ):
            config[name] = getattr(self, name)
        if isinstance(self.attention, keras.layers.Layer):
            config["attention"] = keras.saving.serialize_keras_object(
                self.attention
            )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its attention layer."""
        attention = config["attention"]
        if isinstance(attention, dict):
            attention = keras.saving.deserialize_keras_object(attention)
        return super().from_config({**config, "attention": attention})

    def _make_encoder(self):
        dtype, width = self.dtype_policy, self.hidden_dim
        self._source_embedding = TokenEmbedding(
            self.source_vocabulary_size,
            width,
            pad_id=None,  # the mask is passed explicitly
            dtype=dtype,
            name="source_embedding",
        )
        self._source_embedding.build()
        self._dropout_layer = Dropout(self.dropout, dtype=dtype)
        self._encoder_layers = []
        for number in range(self.num_layers):
            name = f"encoder_{number}"
            if self.bidirectional:
                layer = Bidirectional(
                    _LAYERS[self.cell], width // 2, name=name, dtype=dtype
                )
            else:
                layer = _LAYERS[self.cell](
                    width,
                    return_sequences=True,
                    return_state=True,
                    dtype=dtype,
                    name=name,
                )
            layer.build((None, None, width))
            self._encoder_layers.append(layer)

    def _make_decoder(self):
        attention = self.attention
        if isinstance(attention, str):
            is_location = attention == "location"
            attention = ScoredAttention(
                attention,
                max_sequence_length=self.max_sequence_length
                if is_location
                else None,
                dtype=self.dtype_policy,
                name="attention",
            )
        self._decoder = RecurrentDecoder(
            self._sizes[1],
            self.cell,
            self.num_layers,
            self.hidden_dim,
            attention,
            self.input_feeding,
            self.dropout,
            dtype=self.dtype_policy,
            name="decoder",
        )
        self._decoder.build()

    def _memory_of(self, memory):
        """Returns the memory of the decoder, () without attention."""
        return () if self.attention is None else memory

    def _sampling_draws(self, target_ids):
        if self.sampling_probability is None:
            return None
        coins, uniforms = (
            uniform(ops.shape(target_ids), self._draws) for _ in range(2)
        )
        return SamplingDraws(coins < self.sampling_probability, uniforms)
