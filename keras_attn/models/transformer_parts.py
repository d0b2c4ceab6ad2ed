"""Layers and configuration of the encoder-decoder Transformer."""

import keras

from keras_attn import checks
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import Dropout, PositionalEmbedding, TokenEmbedding
from keras_attn.layers.attention_position import (
    check_position,
    serialized_position,
    with_position,
)
from keras_attn.models.block_options import BLOCK_OPTIONS, block_options
from keras_attn.models.generative_model import GenerativeModel

_POSITIONS = "encoder_attention_position", "decoder_attention_position"


class TransformerParts(GenerativeModel):
    """Creates embeddings, positions, two stacks of blocks and the output.

    Abstract: `Transformer` defines the forward pass and documents the
    arguments.
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size=None,
        num_layers=6,
        num_heads=8,
        hidden_dim=512,
        intermediate_dim=2048,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        gated=False,
        normalize_first=False,
        epsilon=1e-5,
        position_embedding="sinusoidal",
        position_embedding_layout="interleaved",
        encoder_attention_position=None,
        decoder_attention_position=None,
        max_sequence_length=None,
        scale_embedding=True,
        tie_word_embeddings=True,
        output_bias=None,
        num_decoder_layers=None,
        pad_id=0,
        start_id=1,
        end_id=2,
        **kwargs,
    ):
        checks.positive_int("source_vocabulary_size", source_vocabulary_size)
        if target_vocabulary_size is not None:
            checks.positive_int(
                "target_vocabulary_size", target_vocabulary_size
            )
        checks.positive_int("num_layers", num_layers)
        if num_decoder_layers is not None:
            checks.positive_int("num_decoder_layers", num_decoder_layers)
        checks.positive_int("num_heads", num_heads)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.fraction("dropout", dropout)
        checks.choice(
            "position_embedding",
            position_embedding,
            ("sinusoidal", "learned", None),
        )
        for name, position in zip(
            _POSITIONS,
            (encoder_attention_position, decoder_attention_position),
            strict=True,
        ):
            if position is not None:
                check_position(position, name)
        if encoder_attention_position is decoder_attention_position is not None:
            raise ValueError(
                "`decoder_attention_position` must be a different object: "
                "saving would not preserve a shared one. Received: the same "
                "object as `encoder_attention_position`"
            )
        if hidden_dim % num_heads:
            raise ValueError(
                "`num_heads` must divide `hidden_dim`. Received: "
                f"num_heads={num_heads}, hidden_dim={hidden_dim}"
            )
        super().__init__(**kwargs)
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.activation = keras.activations.get(activation)
        self.gated = gated
        self.normalize_first = normalize_first
        self.epsilon = epsilon
        self.position_embedding = position_embedding
        self.position_embedding_layout = position_embedding_layout
        self.encoder_attention_position = encoder_attention_position
        self.decoder_attention_position = decoder_attention_position
        self.max_sequence_length = max_sequence_length
        self.scale_embedding = scale_embedding
        self.tie_word_embeddings = tie_word_embeddings
        self.output_bias = (
            not tie_word_embeddings if output_bias is None else output_bias
        )
        self.num_decoder_layers = num_decoder_layers
        self.pad_id = pad_id
        self.start_id = start_id
        self.end_id = end_id
        self._check_special_ids()
        self._make_embeddings_and_output()
        self._make_blocks()
        # All weights exist from here on. A model built by its first call
        # would reload without the weights of other entry points.
        self.built = True

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            *BLOCK_OPTIONS,
            "source_vocabulary_size",
            "target_vocabulary_size",
            "num_layers",
            "hidden_dim",
            "position_embedding",
            "position_embedding_layout",
            "max_sequence_length",
            "scale_embedding",
            "tie_word_embeddings",
            "output_bias",
            "num_decoder_layers",
            "pad_id",
            "start_id",
            "end_id",
        ):
            config[name] = getattr(self, name)
        for name in _POSITIONS:
            config[name] = serialized_position(getattr(self, name))
        config["activation"] = keras.activations.serialize(self.activation)
        return config

    @classmethod
    def from_config(cls, config):
        """Creates the model and its attention positions."""
        return super().from_config(with_position(config, *_POSITIONS))

    def _make_embeddings_and_output(self):
        """Creates embeddings, positions and output."""
        dtype = self.dtype_policy
        names = ("source", "target")
        shared = self.target_vocabulary_size is None
        tied_bias = self.output_bias and self.tie_word_embeddings
        embeddings = [
            TokenEmbedding(
                size,
                self.hidden_dim,
                scale=self.scale_embedding,
                logits_bias=biased,
                pad_id=None,  # the model passes positions on, not masks
                dtype=dtype,
                name=f"{'token' if shared else name}_embedding",
            )
            # The matrix of the target embedding gives the logits.
            for name, size, biased in zip(
                names,
                self._sizes,
                (tied_bias and shared, tied_bias),
                strict=True,
            )
        ]
        self._source_embedding = embeddings[0]
        self._source_embedding.build()
        self._target_embedding = embeddings[0] if shared else embeddings[1]
        if not shared:
            self._target_embedding.build()
        width = (None, None, self.hidden_dim)
        self._source_positions = self._target_positions = None
        if self.position_embedding is not None:
            self._source_positions, self._target_positions = (
                PositionalEmbedding(
                    kind=self.position_embedding,
                    layout=self.position_embedding_layout,
                    max_sequence_length=self.max_sequence_length,
                    dtype=dtype,
                    name=f"{name}_positions",
                )
                for name in names
            )
            self._source_positions.build(width)
            self._target_positions.build(width)
        self._dropout_layer = Dropout(self.dropout, dtype=dtype)
        self._output_dense = None
        if not self.tie_word_embeddings:
            self._output_dense = keras.layers.Dense(
                self._sizes[1],
                use_bias=self.output_bias,
                dtype=dtype,
                name="output",
            )
            self._output_dense.build(width)

    def _make_blocks(self):
        """Creates the two stacks of blocks."""
        config = block_options(self)
        width = (None, None, self.hidden_dim)
        self._encoder_blocks = [
            EncoderBlock(
                name=f"encoder_block_{i}",
                attention_position=self.encoder_attention_position,
                **config,
            )
            for i in range(self.num_layers)
        ]
        self._decoder_blocks = [
            DecoderBlock(
                name=f"decoder_block_{i}",
                attention_position=self.decoder_attention_position,
                **config,
            )
            for i in range(self.num_decoder_layers or self.num_layers)
        ]
        for block in self._encoder_blocks:
            block.build(width)
        for block in self._decoder_blocks:
            block.build(width, width)
        if self.normalize_first:
            self._encoder_norm, self._decoder_norm = (
                keras.layers.LayerNormalization(
                    epsilon=self.epsilon,
                    dtype=self.dtype_policy,
                    name=f"{side}_norm",
                )
                for side in ("encoder", "decoder")
            )
            self._encoder_norm.build(width)
            self._decoder_norm.build(width)
