"""Encoder-decoder Transformer."""

import dataclasses
from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.backend import full
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.decoding import DecodingState
from keras_attn.layers import Dropout, PositionalEmbedding, TokenEmbedding
from keras_attn.layers.attention_position import (
    as_attribute,
    layer_positions,
    serialized_position,
    with_position,
)
from keras_attn.layers.normalization import make_norm
from keras_attn.models.alignment import (
    cross_attention_weights,
    step_with_weights,
)
from keras_attn.models.block_stack import BlockStack, make_stack
from keras_attn.models.chunked_loss import ChunkedLoss
from keras_attn.models.decoding_weights import DecodingWeights
from keras_attn.models.generative_model import GenerativeModel
from keras_attn.models.input_checks import check_pair, ids_spec
from keras_attn.models.layout import (
    TRANSFORMER,
    block_sizes,
    check_rules,
    check_sizes,
    layout_map_method,
)
from keras_attn.models.packing import (
    PACKING_IDS,
    check_packing_ids,
    ids_and_packing,
    sentence_positions,
    sentence_starts,
    split_pair,
)
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Activation, Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.layers.attention_position import LayerPositions


_POSITIONS = "encoder_attention_position", "decoder_attention_position"


@keras.saving.register_keras_serializable(package="keras_attn")
class Transformer(ChunkedLoss, GenerativeModel):
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
            blocks, or a list with one or None for each of them. Default None.
        decoder_attention_position: same for the decoder blocks; must be other
            objects.
        max_sequence_length: int. The longest sequence, in tokens; learned
            tables have as many rows. None: no limit, not allowed with learned
            positions.
        scale_embedding: bool. Whether embeddings are multiplied by sqrt(D).
            Default True, as in the paper.
        normalize_embedding: bool. Whether to apply a layer norm to embeddings,
            of each side its own, as in BART. Default False.
        tie_word_embeddings: bool. Whether the output uses the target
            embedding's matrix. Default True.
        output_bias: bool. Whether the logits have a bias. None: only if
            `tie_word_embeddings` is False.
        num_decoder_layers: int. Blocks in the decoder; None: `num_layers`.
        num_decoder_heads: int. N of the decoder, dividing `hidden_dim`; None:
            `num_heads`.
        decoder_intermediate_dim: int. Width inside the feed-forward networks of
            the decoder; None: `intermediate_dim`.
        pad_id: int. The id of padding tokens, unlike `end_id`.
        start_id: int. First id of every target.
        end_id: int. Last id of every sequence.
        **kwargs: other options of the blocks (`key_dim`,
            `num_key_value_heads`, `use_bias`, `sliding_window`, one value
            or a list with one for each layer, `normalization`,
            `normalize_output`, `use_parallel_residual`, `qk_norm`,
            `attention_soft_cap`, `use_sinks`, `layer_scale`,
            `stochastic_depth`, `gate_limit`, `use_qkv_bias`,
            `skip_first_norm`, `num_experts`, `num_experts_per_tok`,
            `router_aux_loss_coef`) and arguments of `keras.Model` (`name`,
            `dtype`, ...).

    Call arguments:
        inputs: pair of int32 (B, S) source ids and int32 (B, T) target ids,
            the target beginning with `start_id`. For rows of several sentences,
            a pair of dicts, each with ids as `"token_ids"` and int32 of the
            same shape as `"packing_ids"`: one id per sentence of a row from 1
            on, the same for source and target, 0 at padding. Each sentence is
            computed as if alone.
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

    _chunks_loss = True
    get_layout_map: Any = layout_map_method(TRANSFORMER)

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        num_layers: int = 6,
        num_heads: int = 8,
        hidden_dim: int = 512,
        intermediate_dim: int = 2048,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        gated: bool = False,
        normalize_first: bool = False,
        epsilon: float = 1e-5,
        position_embedding: str | None = "sinusoidal",
        position_embedding_layout: str = "interleaved",
        encoder_attention_position: "LayerPositions" = None,
        decoder_attention_position: "LayerPositions" = None,
        max_sequence_length: int | None = None,
        scale_embedding: bool = True,
        normalize_embedding: bool = False,
        tie_word_embeddings: bool = True,
        output_bias: bool | None = None,
        num_decoder_layers: int | None = None,
        num_decoder_heads: int | None = None,
        decoder_intermediate_dim: int | None = None,
        pad_id: int = 0,
        start_id: int = 1,
        end_id: int = 2,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("source_vocabulary_size", source_vocabulary_size)
        if target_vocabulary_size is not None:
            checks.positive_int(
                "target_vocabulary_size", target_vocabulary_size
            )
        checks.positive_int("num_layers", num_layers, most=checks.MOST_LAYERS)
        if num_decoder_layers is not None:
            checks.positive_int(
                "num_decoder_layers",
                num_decoder_layers,
                most=checks.MOST_LAYERS,
            )
        for name, value in (
            ("num_decoder_heads", num_decoder_heads),
            ("decoder_intermediate_dim", decoder_intermediate_dim),
        ):
            if value is not None:
                checks.positive_int(name, value)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.choice(
            "position_embedding",
            position_embedding,
            ("sinusoidal", "learned", None),
        )
        checks.choice(
            "position_embedding_layout",
            position_embedding_layout,
            ("interleaved", "halves"),
        )
        checks.boolean("scale_embedding", scale_embedding)
        checks.boolean("normalize_embedding", normalize_embedding)
        checks.boolean("tie_word_embeddings", tie_word_embeddings)
        if output_bias is not None:
            checks.boolean("output_bias", output_bias)
        positions = tuple(
            layer_positions(position, count, name)
            for name, position, count in zip(
                _POSITIONS,
                (encoder_attention_position, decoder_attention_position),
                (num_layers, num_decoder_layers or num_layers),
                strict=True,
            )
        )
        of_encoder, of_decoder = (
            {id(one) for one in side if one is not None} for side in positions
        )
        if of_encoder & of_decoder:
            raise ValueError(
                "`decoder_attention_position` must be a different object: "
                "saving would not preserve a shared one. Received: the same "
                "object as `encoder_attention_position`"
            )
        config = BlockConfig.with_options(
            kwargs,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            activation=activation,
            gated=gated,
            normalize_first=normalize_first,
            epsilon=epsilon,
        )
        config.head_dim(hidden_dim, "`hidden_dim`")
        for layers in (num_layers, num_decoder_layers or num_layers):
            config.check_layers(layers)
        if config.use_parallel_residual:
            raise ValueError(
                "`use_parallel_residual` must be False, because decoder blocks "
                "have a memory. Received: use_parallel_residual=True"
            )
        if num_decoder_heads is not None:
            _check_decoder_heads(num_decoder_heads, config, hidden_dim)
        decoder_config = dataclasses.replace(
            config,
            num_heads=num_decoder_heads or num_heads,
            intermediate_dim=decoder_intermediate_dim or intermediate_dim,
        )
        if position_embedding == "sinusoidal" and hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even, for sines and cosines. "
                f"Received: hidden_dim={hidden_dim}"
            )
        check_sizes(
            *block_sizes("encoder_block_0", config),
            *block_sizes("decoder_block_0", decoder_config),
            *_vocabularies(source_vocabulary_size, target_vocabulary_size),
        )
        super().__init__(**kwargs)
        self._block_config, self._decoder_config = config, decoder_config
        config.set_attributes(self)
        self.source_vocabulary_size: int = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.position_embedding = position_embedding
        self.position_embedding_layout = position_embedding_layout
        self.encoder_attention_position: Any = as_attribute(
            encoder_attention_position
        )
        self.decoder_attention_position: Any = as_attribute(
            decoder_attention_position
        )
        self.max_sequence_length = max_sequence_length
        self.scale_embedding = scale_embedding
        self.normalize_embedding = normalize_embedding
        self.tie_word_embeddings = tie_word_embeddings
        self.output_bias: bool = (
            not tie_word_embeddings if output_bias is None else output_bias
        )
        self.num_decoder_layers = num_decoder_layers
        self.num_decoder_heads = num_decoder_heads
        self.decoder_intermediate_dim = decoder_intermediate_dim
        self.pad_id: int = pad_id
        self.start_id: int = start_id
        self.end_id: int = end_id
        self._check_special_ids()
        self._make_embeddings_and_output()
        self._make_blocks(*positions)
        # All weights exist from here on. A model built by its first call would
        # reload without the weights of other entry points (as of Keras 3.15.1).
        self.built = True
        check_rules(self)

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
        self._source_norm = self._target_norm = None
        if self.normalize_embedding:
            self._source_norm, self._target_norm = (
                self._make_norm(f"{name}_norm") for name in names
            )
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

    def _make_blocks(self, encoder_positions, decoder_positions):
        """Creates the two stacks of blocks."""
        width = (None, None, self.hidden_dim)
        self._encoder_blocks = [
            EncoderBlock(
                attention_position=encoder_positions[i],
                dtype=self.dtype_policy,
                name=f"encoder_block_{i}",
                **self._block_config.of_layer(i),
            )
            for i in range(self.num_layers)
        ]
        self._decoder_blocks = [
            DecoderBlock(
                attention_position=decoder_positions[i],
                dtype=self.dtype_policy,
                name=f"decoder_block_{i}",
                **self._decoder_config.of_layer(i),
            )
            for i in range(self.num_decoder_layers or self.num_layers)
        ]
        for block in self._encoder_blocks:
            block.build(width)
        for block in self._decoder_blocks:
            block.build(width, width)
        self._encoder_norm = self._decoder_norm = None
        if self._block_config.needs_final_norm:
            self._encoder_norm, self._decoder_norm = (
                self._make_norm(f"{side}_norm")
                for side in ("encoder", "decoder")
            )

    def _make_norm(self, name):
        norm = make_norm(
            self.normalization,
            self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )
        norm.build((None, None, self.hidden_dim))
        return norm

    @classmethod
    def base(
        cls,
        source_vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Returns the paper's base model.

        At V = 37,000 it has 63 million parameters; the paper reports 65.
        """
        return cls(source_vocabulary_size, target_vocabulary_size, **kwargs)

    @classmethod
    def big(
        cls,
        source_vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Returns the paper's big model.

        At V = 37,000 it has 214 million parameters; the paper reports 213.
        """
        sizes = {
            "num_heads": 16,
            "hidden_dim": 1024,
            "intermediate_dim": 4096,
            "dropout": 0.3,
        }
        return cls(
            source_vocabulary_size, target_vocabulary_size, **(sizes | kwargs)
        )

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        source_ids, target_ids = self.check_inputs(inputs)
        memory, source_positions = self.encode(source_ids, training=training)
        _, packing_ids = ids_and_packing(source_ids)
        return self.decode(
            target_ids,
            memory,
            source_positions,
            training=training,
            source_packing_ids=packing_ids,
        )

    if TYPE_CHECKING:
        __call__ = call

    def encode(
        self, source_ids: TensorLike, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encodes the source.

        Args:
            source_ids: int32 (B, S), or a dict as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            Memory, float (B, S, D), and positions, int32 (B, S).
        """
        source_ids, packing_ids = ids_and_packing(source_ids)
        x, positions = self.embed_source(source_ids)
        if packing_ids is not None:
            positions = sentence_positions(packing_ids, positions >= 0)
        if self._source_positions is not None:
            x = self._source_positions(x, positions=positions)
        if self._source_norm is not None:
            x = self._source_norm(x)
        x = self._dropout_layer(x, training=training)
        for block in self._encoder_blocks:
            x = block(
                x,
                positions=positions,
                training=training,
                segment_ids=packing_ids,
            )
        if self._encoder_norm is not None:
            x = self._encoder_norm(x)
        return x, positions

    def embed_source(self, source_ids: TensorLike) -> tuple[Tensor, Tensor]:
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

    def decode(
        self,
        target_ids: TensorLike,
        memory: TensorLike,
        source_positions: TensorLike,
        training: bool | None = None,
        source_packing_ids: TensorLike | None = None,
    ) -> Tensor:
        """Decodes a whole target at once (teacher forcing).

        Args:
            target_ids: int32 (B, T), or a dict as in a call.
            memory: float (B, S, D), from `encode`.
            source_positions: int32 (B, S), from `encode`.
            training: bool. Whether to apply dropout.
            source_packing_ids: int32 (B, S). The packing ids of the source, if
                the target has some. Default None.

        Returns:
            Logits, float (B, T, V).
        """
        target_ids, packing_ids = ids_and_packing(target_ids)
        token_mask = ops.not_equal(target_ids, self.pad_id)
        if self.start_id == self.pad_id:
            # As in Marian: the start token is not padding despite its id.
            if packing_ids is None:
                first = ops.arange(ops.shape(target_ids)[1], dtype="int32")
                first = (first == 0)[None]
            else:
                first = sentence_starts(packing_ids)
            token_mask = ops.logical_or(token_mask, first)
        if packing_ids is None:
            positions = positions_from_mask(token_mask)
        else:
            positions = sentence_positions(packing_ids, token_mask)
        x = self._target_embedding(target_ids)
        if self._target_positions is not None:
            x = self._target_positions(x, positions=positions)
        if self._target_norm is not None:
            x = self._target_norm(x)
        x = self._dropout_layer(x, training=training)
        for block in self._decoder_blocks:
            x = block(
                x,
                memory,
                positions=positions,
                memory_positions=source_positions,
                training=training,
                segment_ids=packing_ids,
                memory_segment_ids=source_packing_ids,
            )
        return self._logits(x)

    def start_decoding(
        self, inputs: Nest, max_new_tokens: int
    ) -> DecodingState:
        """Encodes the source and projects it once for every decoder block.

        Args:
            inputs: int32 (B, S) source ids.
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`, with room for `max_new_tokens` tokens per row.
        """
        inputs = self._check_start(inputs, max_new_tokens)
        memory, positions = self.encode(inputs, training=False)
        pairs = [
            block.project_memory(memory, positions)
            for block in self._decoder_blocks
        ]
        keys, values = zip(*pairs, strict=True)
        rows = ops.shape(inputs)[0]
        head_dim = self._decoder_config.head_dim(self.hidden_dim)
        hypothesis = kv.empty(
            rows,
            max_new_tokens,
            len(self._decoder_blocks),
            self._decoder_config.key_value_heads,
            head_dim,
            head_dim,
            self.compute_dtype,
            self._decoder_config.sliding_window,
        )
        tokens = full((rows, 1), self.start_id, dtype="int32")
        memory = kv.from_projections(keys, values, positions)
        return DecodingState(memory, hypothesis, tokens)

    def prepare_weights(self) -> Any:
        """Returns weights in the layout that decoding steps read fastest."""
        tied = self._output_dense is None
        return DecodingWeights.of(
            self._decoder_blocks, self._target_embedding if tied else None
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
        count = tokens.shape[1]
        positions, cache = kv.open_slots(state.hypothesis, count)
        checks.batch("tokens", tokens.shape, positions.shape[0])
        length = kv.slots(cache)
        x = self._target_embedding(tokens)
        if self._target_positions is not None:
            x = self._target_positions.decode_step(x, positions, length)
        if self._target_norm is not None:
            x = self._target_norm(x)
        weights = state.weights or DecodingWeights()
        step = kv.DecodingStep(positions, state.memory, weights.blocks)
        for layer, block in enumerate(self._decoder_blocks):
            x, cache = block.decode_step(x, cache, layer, step)
        cache = kv.close_slots(cache, count)
        logits = self._logits(x, weights.output_matrix)
        return logits, state._replace(hypothesis=cache)

    def attend_step(
        self, tokens: TensorLike, state: DecodingState
    ) -> tuple[Tensor, DecodingState, Tensor]:
        """Runs `decode_step` and returns its attention to the source.

        Args:
            tokens: int32 (R, T), R rows of k hypotheses per source.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, T, V); the next `DecodingState`; and float32
            (B, k T, S), the cross-attention weights of the last block, the mean
            over its heads.
        """
        layer = self._decoder_blocks[-1].cross_attention
        return step_with_weights(self, layer, tokens, state)

    def source_mask(self, memory: Any) -> Tensor:
        """Returns which positions of the memory are tokens, bool (B, S).

        Args:
            memory: that of a `DecodingState`.
        """
        heads = self._decoder_config.key_value_heads
        return kv.read(memory, 0, heads)[2] >= 0

    def align(
        self, inputs: Nest, tokens: TensorLike, lengths: TensorLike
    ) -> Tensor:
        """Returns the cross-attention weights of generated tokens.

        Args:
            inputs: int32 (B, S) source ids.
            tokens: int32 (B, t, L), as generated.
            lengths: int32 (B, t).

        Returns:
            Float32 (B, t, M, N, L, S): the cross-attention weights of the M
            decoder blocks with N heads, zeros past the end.
        """
        layers = [block.cross_attention for block in self._decoder_blocks]
        return cross_attention_weights(self, layers, inputs, tokens, lengths)

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns [source ids, target ids], or raises ValueError."""
        pair, packing = split_pair(inputs)
        pair = check_pair(pair, self._sizes, self.max_sequence_length)
        if packing is None:
            return pair
        return [
            {
                "token_ids": ids,
                PACKING_IDS: check_packing_ids(
                    packed, ids.shape, f"{side}_{PACKING_IDS}"
                ),
            }
            for side, ids, packed in zip(
                ("source", "target"), pair, packing, strict=True
            )
        ]

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return [ids_spec(), ids_spec()]

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        target_shape, _ = ids_and_packing(inputs_shape[1])
        return (*target_shape, self._sizes[1])

    def block_stack(self, stack: str = "decoder") -> BlockStack:
        """Returns blocks and a final norm, and those of the decoder's output.

        Args:
            stack: `"encoder"` or `"decoder"`. Default `"decoder"`.
        """
        if stack == "encoder":
            return make_stack(self._encoder_blocks, self._encoder_norm)
        found = make_stack(self._decoder_blocks, self._decoder_norm)
        return found._replace(logits=self._logits)

    def _output_parts(self):
        return self._output_dense, self._target_embedding

    def _logits(self, x, output_matrix=()):
        if self._decoder_norm is not None:
            x = self._decoder_norm(x)
        if self._returns_hidden:
            return x
        if self._output_dense is not None:
            return self._output_dense(x)
        return self._target_embedding.logits(x, output_matrix)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config() | self._block_config.get_config()
        for name in (
            "source_vocabulary_size",
            "target_vocabulary_size",
            "num_layers",
            "hidden_dim",
            "position_embedding",
            "position_embedding_layout",
            "max_sequence_length",
            "scale_embedding",
            "normalize_embedding",
            "tie_word_embeddings",
            "output_bias",
            "num_decoder_layers",
            "num_decoder_heads",
            "decoder_intermediate_dim",
            "pad_id",
            "start_id",
            "end_id",
        ):
            config[name] = getattr(self, name)
        for name in _POSITIONS:
            config[name] = serialized_position(getattr(self, name))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its attention positions."""
        return super().from_config(with_position(config, *_POSITIONS))


def _check_decoder_heads(heads, config, hidden_dim):
    received = f"Received: num_decoder_heads={heads}"
    if heads % (config.num_key_value_heads or 1):
        raise ValueError(
            "`num_decoder_heads` must be a multiple of `num_key_value_heads`. "
            f"{received}, num_key_value_heads={config.num_key_value_heads}"
        )
    if config.key_dim is None and hidden_dim % heads:
        raise ValueError(
            "`num_decoder_heads` must divide `hidden_dim` if `key_dim` is not "
            f"given. {received} and {hidden_dim} features"
        )


def _vocabularies(source, target):
    """Returns what the embeddings split, for `check_sizes`."""
    path = "{}_embedding/table/embeddings"
    if target is None:
        return [("source_vocabulary_size", source, path.format("token"), 0)]
    return [
        ("source_vocabulary_size", source, path.format("source"), 0),
        ("target_vocabulary_size", target, path.format("target"), 0),
    ]
