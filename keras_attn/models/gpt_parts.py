"""Layers and configuration of the causal language models."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.blocks import DecoderBlock
from keras_attn.layers import Dropout, PositionalEmbedding, TokenEmbedding
from keras_attn.layers.attention_position import (
    check_position,
    serialized_position,
    with_position,
)
from keras_attn.layers.gelu_tanh import gelu_tanh
from keras_attn.models.block_options import BLOCK_OPTIONS, block_options
from keras_attn.models.generative_model import GenerativeModel
from keras_attn.models.input_checks import check_ids, check_mask

_INITIAL_STDDEV = 0.02  # as published


class GPTParts(GenerativeModel):
    """Creates embeddings, positions, a stack of blocks and the output.

    Abstract: `GPT`, `TransformerXL` and `XLNet` define the forward pass and
    document the arguments.
    """

    output_bias = False

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=None,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.0,
        activation=gelu_tanh,
        gated=False,
        normalize_first=True,
        epsilon=1e-5,
        position_embedding="learned",
        attention_position=None,
        max_sequence_length=1024,
        tie_word_embeddings=True,
        pad_id=0,
        start_id=1,
        end_id=2,
        **kwargs,
    ):
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.positive_int("num_layers", num_layers)
        checks.positive_int("num_heads", num_heads)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.fraction("dropout", dropout)
        checks.choice(
            "position_embedding",
            position_embedding,
            ("learned", "sinusoidal", None),
        )
        if attention_position is not None:
            check_position(attention_position)
        if max_sequence_length is not None:
            checks.positive_int("max_sequence_length", max_sequence_length)
        if hidden_dim % num_heads:
            raise ValueError(
                "`num_heads` must divide `hidden_dim`. Received: "
                f"num_heads={num_heads}, hidden_dim={hidden_dim}"
            )
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim or 4 * hidden_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.activation = keras.activations.get(activation)
        self.gated = gated
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self.position_embedding = position_embedding
        self.attention_position = attention_position
        self.max_sequence_length = max_sequence_length
        self.tie_word_embeddings = tie_word_embeddings
        self.pad_id = pad_id
        self.start_id = start_id
        self.end_id = end_id
        self._check_special_ids(optional=("pad_id", "start_id", "end_id"))
        self._make_embeddings_and_output()
        self._make_blocks()
        self.built = True

    @property
    def source_vocabulary_size(self):
        """V, the vocabulary size of prompts."""
        return self.vocabulary_size

    def check_inputs(self, inputs):
        """Returns the inputs, or raises ValueError."""
        parts = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        if "token_ids" not in parts or parts.keys() - {
            "token_ids",
            "padding_mask",
        }:
            raise ValueError(
                "`inputs` must contain token_ids, and optionally padding_mask. "
                f"Received: {' and '.join(parts)}"
            )
        ids = check_ids("token_ids", parts["token_ids"], self.vocabulary_size)
        length = ids.shape[1]
        if (
            self.max_sequence_length is not None
            and (length or 0) > self.max_sequence_length
        ):
            raise ValueError(
                "`token_ids` must not be longer than "
                f"max_sequence_length={self.max_sequence_length}. Received: "
                f"{length} tokens"
            )
        if not isinstance(inputs, dict):
            return ids
        checked = {"token_ids": ids}
        if "padding_mask" in parts:
            checked["padding_mask"] = check_mask(
                parts["padding_mask"], ids.shape
            )
        return checked

    def compute_output_shape(self, inputs_shape):
        """Returns the shape of the logits."""
        if isinstance(inputs_shape, dict):
            inputs_shape = inputs_shape["token_ids"]
        return (*inputs_shape, self.vocabulary_size)

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            *BLOCK_OPTIONS,
            "vocabulary_size",
            "num_layers",
            "hidden_dim",
            "position_embedding",
            "max_sequence_length",
            "tie_word_embeddings",
            "pad_id",
            "start_id",
            "end_id",
        ):
            config[name] = getattr(self, name)
        config["activation"] = keras.activations.serialize(self.activation)
        config["attention_position"] = serialized_position(
            self.attention_position
        )
        return config

    @classmethod
    def from_config(cls, config):
        """Creates the model and its attention position."""
        return super().from_config(with_position(config))

    def _parts(self, inputs):
        """Returns token ids and the token mask, None if all are tokens."""
        if not isinstance(inputs, dict):
            inputs = {"token_ids": inputs}
        token_ids, token_mask = inputs["token_ids"], inputs.get("padding_mask")
        if token_mask is not None:
            return token_ids, ops.cast(token_mask, "bool")
        if self.pad_id is None:
            return token_ids, None
        return token_ids, ops.not_equal(token_ids, self.pad_id)

    def _normalized(self, x):
        return self._norm(x) if self.normalize_first else x

    def _logits(self, x, output_matrix=()):
        if self._output_dense is not None:
            return self._output_dense(x)
        return self._token_embedding.logits(x, output_matrix)

    def _make_embeddings_and_output(self):
        """Creates embeddings, positions, the final norm and the output."""
        dtype = self.dtype_policy
        width = (None, None, self.hidden_dim)
        self._token_embedding = TokenEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            scale=False,
            pad_id=None,  # the model passes positions on, not masks
            initializer=self._first_weights(),
            logits_bias=self.output_bias and self.tie_word_embeddings,
            dtype=dtype,
            name="token_embedding",
        )
        self._token_embedding.build()
        self._position_embedding = None
        if self.position_embedding is not None:
            self._position_embedding = PositionalEmbedding(
                kind=self.position_embedding,
                max_sequence_length=self.max_sequence_length,
                initializer=self._first_weights(),
                dtype=dtype,
                name="positions",
            )
            self._position_embedding.build(width)
        self._dropout_layer = Dropout(self.dropout, dtype=dtype)
        if self.normalize_first:
            self._norm = keras.layers.LayerNormalization(
                epsilon=self.epsilon, dtype=dtype, name="norm"
            )
            self._norm.build(width)
        self._output_dense = None
        if not self.tie_word_embeddings:
            self._output_dense = keras.layers.Dense(
                self.vocabulary_size,
                use_bias=self.output_bias,
                kernel_initializer=self._first_weights(),
                dtype=dtype,
                name="output",
            )
            self._output_dense.build(width)

    def _make_blocks(self):
        self._blocks = [
            DecoderBlock(
                name=f"block_{i}",
                attention_position=self.attention_position,
                kernel_initializer=self._first_weights(),
                **block_options(self),
            )
            for i in range(self.num_layers)
        ]
        for block in self._blocks:
            block.build((None, None, self.hidden_dim))

    @staticmethod
    def _first_weights():
        return keras.initializers.RandomNormal(stddev=_INITIAL_STDDEV)
