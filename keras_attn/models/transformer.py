"""Encoder-decoder Transformer."""

import keras
from keras import ops

from keras_attn import cache as kv
from keras_attn.decoding import DecodingState
from keras_attn.models.alignment import cross_attention_weights
from keras_attn.models.decoding_weights import DecodingWeights
from keras_attn.models.input_checks import check_pair
from keras_attn.models.transformer_parts import TransformerParts
from keras_attn.ops import positions_from_mask


@keras.saving.register_keras_serializable(package="keras_attn")
class Transformer(TransformerParts):
    """Encoder-decoder Transformer.

        memory = Encoder(E[x] sqrt(D) + PE)
        logits = Decoder(E[y] sqrt(D) + PE, memory) E^T

    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, whose h,
    d_model, d_ff are `num_heads`, `hidden_dim`, `intermediate_dim`. With one
    vocabulary for both sides, source embedding, target embedding and output
    share the matrix E (sec. 3.4).

    Args:
        source_vocabulary_size: int. V of the source.
        target_vocabulary_size: int. V of the target. None: one vocabulary and
            one matrix E for both sides.
        num_layers: int. Blocks in the encoder, and in the decoder.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int. D.
        intermediate_dim: int. Width inside the feed-forward networks.
        dropout: float in [0, 1). On embeddings and on sublayer outputs.
        attention_dropout: float in [0, 1). On attention weights; the paper has
            none.
        activation_dropout: float in [0, 1). Inside feed-forward networks; the
            paper has none.
        activation: name or callable. Default `"relu"`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm after each
            stack. Default False, as in the paper.
        epsilon: float. Added to the variance in layer norms.
        position_embedding: `"sinusoidal"`, `"learned"`, or None: the position
            embedding added to token embeddings.
        position_embedding_layout: `"interleaved"` or `"halves"`: the order of
            sines and cosines of sinusoidal positions, as in
            `PositionalEmbedding`.
        encoder_attention_position: `AttentionPosition`, such as
            `RotaryPosition`, shared by the self-attention layers of all encoder
            blocks. Default None.
        decoder_attention_position: same for the decoder blocks; must be a
            different object.
        max_sequence_length: int. The longest sequence, in tokens; learned
            tables have as many rows. None: no limit, not allowed with learned
            positions.
        scale_embedding: bool. Whether embeddings are multiplied by sqrt(D).
            Default True, as in the paper.
        tie_word_embeddings: bool. Whether the output uses the target
            embedding's matrix. Default True.
        output_bias: bool. Whether the logits have a bias. None: only if
            `tie_word_embeddings` is False.
        num_decoder_layers: int. Blocks in the decoder; None: `num_layers`.
        pad_id: int. The id of padding tokens.
        start_id: int. First id of every target.
        end_id: int. Last id of every sequence.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: pair of int32 (B, S) source ids and int32 (B, T) target ids,
            the target beginning with `start_id`.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, V): logits of the token after each target token.

    Raises:
        ValueError: arguments out of range; ids of the wrong rank, not integers,
            or out of range; sequences longer than a learned table.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> source = np.array([[7, 8, 9, 2]])
        >>> target = np.array([[1, 11, 12]])
        >>> tuple(model((source, target)).shape)
        (1, 3, 100)
    """

    @classmethod
    def base(
        cls, source_vocabulary_size, target_vocabulary_size=None, **kwargs
    ):
        """Returns the paper's base model: 65 M parameters at V = 37,000."""
        return cls(source_vocabulary_size, target_vocabulary_size, **kwargs)

    @classmethod
    def big(cls, source_vocabulary_size, target_vocabulary_size=None, **kwargs):
        """Returns the paper's big model: 213 M parameters at V = 37,000."""
        sizes = {
            "num_heads": 16,
            "hidden_dim": 1024,
            "intermediate_dim": 4096,
            "dropout": 0.3,
        }
        return cls(
            source_vocabulary_size, target_vocabulary_size, **(sizes | kwargs)
        )

    def call(self, inputs, training=None):
        """Applies the model; the class docstring lists the arguments."""
        source_ids, target_ids = self.check_inputs(inputs)
        memory, source_positions = self.encode(source_ids, training=training)
        return self.decode(
            target_ids, memory, source_positions, training=training
        )

    def encode(self, source_ids, training=None):
        """Encodes the source.

        Args:
            source_ids: int32 (B, S).
            training: bool. Whether to apply dropout.

        Returns:
            Memory, float (B, S, D), and positions, int32 (B, S).
        """
        x, positions = self.embed_source(source_ids)
        if self._source_positions is not None:
            x = self._source_positions(x, positions=positions)
        x = self._dropout_layer(x, training=training)
        for block in self._encoder_blocks:
            x = block(x, positions=positions, training=training)
        if self.normalize_first:
            x = self._encoder_norm(x)
        return x, positions

    def embed_source(self, source_ids):
        """Embeds the source, the first step of `encode`.

        A model whose sources are not token ids overrides this method,
        `read_sources` and `check_inputs`.

        Args:
            source_ids: int32 (B, S).

        Returns:
            Float (B, S, D), without absolute positions; and positions, int32
            (B, S), -1 at padding.
        """
        token_mask = ops.not_equal(source_ids, self.pad_id)
        return self._source_embedding(source_ids), positions_from_mask(
            token_mask
        )

    def decode(self, target_ids, memory, source_positions, training=None):
        """Decodes a whole target at once (teacher forcing).

        Args:
            target_ids: int32 (B, T).
            memory: float (B, S, D), from `encode`.
            source_positions: int32 (B, S), from `encode`.
            training: bool. Whether to apply dropout.

        Returns:
            Logits, float (B, T, V).
        """
        token_mask = ops.not_equal(target_ids, self.pad_id)
        if self.start_id == self.pad_id:
            # As in Marian: the start token is not padding despite its id.
            first = ops.arange(ops.shape(target_ids)[1], dtype="int32") == 0
            token_mask = ops.logical_or(token_mask, first[None])
        positions = positions_from_mask(token_mask)
        x = self._target_embedding(target_ids)
        if self._target_positions is not None:
            x = self._target_positions(x, positions=positions)
        x = self._dropout_layer(x, training=training)
        for block in self._decoder_blocks:
            x = block(
                x,
                memory,
                positions=positions,
                memory_positions=source_positions,
                training=training,
            )
        return self._logits(x)

    def start_decoding(self, inputs, max_new_tokens):
        """Encodes the source and projects it once for every decoder block.

        Args:
            inputs: int32 (B, S) source ids.
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`, with room for `max_new_tokens` tokens per row.
        """
        memory, positions = self.encode(inputs, training=False)
        pairs = [
            block.project_memory(memory, positions)
            for block in self._decoder_blocks
        ]
        keys, values = zip(*pairs, strict=True)
        rows = ops.shape(inputs)[0]
        heads = self.num_heads
        hypothesis = kv.empty(
            rows,
            max_new_tokens,
            len(self._decoder_blocks),
            heads,
            self.hidden_dim // heads,
            self.hidden_dim // heads,
            self.compute_dtype,
        )
        tokens = ops.full((rows, 1), self.start_id, dtype="int32")
        memory = kv.from_projections(keys, values, positions)
        return DecodingState(memory, hypothesis, tokens)

    def prepare_weights(self):
        """Returns weights in the layout that decoding steps read fastest."""
        tied = self._output_dense is None
        return DecodingWeights.of(
            self._decoder_blocks, self._target_embedding if tied else None
        )

    def decode_step(self, tokens, state):
        """Reads the next tokens of every hypothesis.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, T, V), and the next `DecodingState`.
        """
        count = tokens.shape[1]
        positions, cache = kv.open_slots(state.hypothesis, count)
        length = kv.slots(cache)
        x = self._target_embedding(tokens)
        if self._target_positions is not None:
            x = self._target_positions.decode_step(x, positions, length)
        weights = state.weights or DecodingWeights.unprepared(
            len(self._decoder_blocks)
        )
        for layer, block in enumerate(self._decoder_blocks):
            x, cache = block.decode_step(
                x, positions, cache, state.memory, layer, weights.blocks[layer]
            )
        cache = kv.close_slots(cache, count)
        logits = self._logits(x, weights.output_matrix)
        return logits, state._replace(hypothesis=cache)

    def align(self, inputs, tokens, lengths):
        """Returns the cross-attention weights of generated tokens.

        Args:
            inputs: int32 (B, S) source ids.
            tokens: int32 (B, t, L), as generated.
            lengths: int32 (B, t).

        Returns:
            Float32 (B, t, M, N, L, S): the cross-attention weights of the M
            decoder blocks, zeros past the end.
        """
        layers = [block.cross_attention for block in self._decoder_blocks]
        return cross_attention_weights(self, layers, inputs, tokens, lengths)

    def check_inputs(self, inputs):
        """Returns (source ids, target ids), or raises ValueError."""
        return check_pair(inputs, self._sizes, self.max_sequence_length)

    def compute_output_shape(self, inputs_shape):
        """Returns the shape of the logits."""
        return (*inputs_shape[1], self._sizes[1])

    def _logits(self, x, output_matrix=()):
        if self.normalize_first:
            x = self._decoder_norm(x)
        if self._output_dense is not None:
            return self._output_dense(x)
        return self._target_embedding.logits(x, output_matrix)
