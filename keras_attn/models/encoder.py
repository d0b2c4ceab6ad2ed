"""The Transformer encoder."""

from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import known_size
from keras_attn.blocks import EncoderBlock
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.layers import (
    CharacterEmbedding,
    Dropout,
    PositionalEmbedding,
    TokenEmbedding,
)
from keras_attn.layers.attention_position import (
    as_attribute,
    layer_positions,
    serialized_position,
    with_position,
)
from keras_attn.layers.normalization import make_norm
from keras_attn.models.block_stack import BlockStack, make_stack
from keras_attn.models.input_checks import (
    CheckedModel,
    check_ids,
    check_mask,
    ids_spec,
)
from keras_attn.models.layout import (
    ENCODER,
    VOCABULARY,
    block_sizes,
    check_rules,
    check_sizes,
    layout_map_method,
)
from keras_attn.models.packing import (
    PACKING_IDS,
    check_packing_ids,
    sentence_positions,
)
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Activation, Initializer, Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.layers.attention_position import LayerPositions


_ONE_FOR_EACH_TOKEN = {
    "character_ids": "a row of characters",
    "segment_ids": "a segment",
}
_MASK = "padding_mask"


@keras.saving.register_keras_serializable(package="keras_attn")
class Encoder(CheckedModel):
    """Transformer encoder: a contextual vector for every token.

        h = Blocks((E[x] + G[segment]) sqrt(D) + f(characters of x) + PE)

    the encoder of Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. With
    `character_vocabulary_size` the embedding of a word is the sum of its entry
    in the table and a vector computed from its characters
    (`CharacterEmbedding`), which also covers unknown words. With `num_segments`
    it adds segment embeddings, as in BERT (Devlin et al. 2019,
    https://arxiv.org/abs/1810.04805), for example to tell a question from a
    passage.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int. D.
        intermediate_dim: int. Width inside the feed-forward networks.
        dropout: float in [0, 1). On embeddings and on sublayer outputs.
        attention_dropout: float in [0, 1). On attention weights.
        activation_dropout: float in [0, 1). Inside feed-forward networks.
        activation: name or callable. Default `"relu"`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm after them.
        epsilon: float. Added to the variance in layer norms.
        position_embedding: `"sinusoidal"`, `"learned"`, or None: the position
            embedding added to token embeddings.
        attention_position: `AttentionPosition`, such as `RotaryPosition`,
            shared by the self-attention layers of all blocks, or a list with
            one or None for each layer. Default None.
        max_sequence_length: int. The longest sequence, in tokens; a learned
            table has as many rows. None: no limit.
        character_vocabulary_size: int. Number of character ids, if the inputs
            include characters. Default None: they do not.
        num_segments: int. Number of segment ids, if the inputs include
            segments. Default None: they do not.
        scale_embedding: bool. Whether embeddings are multiplied by sqrt(D).
            Default True, as in the paper; BERT does not scale.
        normalize_embedding: bool. Whether to apply a layer norm to the sum of
            embeddings and positions, as in BERT. Default False.
        embedding_dim: int. Features of the embeddings, of which a dense layer
            makes D, as in ALBERT and ELECTRA. Default None: D, without a dense
            layer.
        share_blocks: bool. Whether one block is applied `num_layers` times, as
            in ALBERT. Default False.
        initializer: initializer of kernels and embedding tables. Default: the
            layers' own.
        pad_id: int. The id of padding tokens and padding characters.
        **kwargs: other options of `EncoderBlock` (`key_dim`,
            `num_key_value_heads`, `use_bias`, `sliding_window`, one value
            or a list with one for each layer, `normalization`,
            `normalize_output`, `use_parallel_residual`, `qk_norm`,
            `attention_soft_cap`, `use_sinks`, `layer_scale`,
            `stochastic_depth`, `gate_limit`, `use_qkv_bias`,
            `skip_first_norm`, `num_experts`, `num_experts_per_tok`,
            `router_aux_loss_coef`) and arguments of `keras.Model` (`name`,
            `dtype`, ...).

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"`;
            with `character_vocabulary_size`, int32 (B, T, C) as
            `"character_ids"`; with `num_segments`, int32 (B, T) as
            `"segment_ids"`. A dict may have bool (B, T) as `"padding_mask"`,
            True at tokens. Default: True except at `pad_id`. For rows of
            several sentences it has int32 (B, T) as `"packing_ids"`, one id
            per sentence of a row from 1 on, 0 at padding: each sentence is
            encoded as if alone.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, D).

    Raises:
        ValueError: arguments out of range; ids of another rank, not integers,
            or out of range; sequences longer than `max_sequence_length`;
            characters or segments that are missing or unexpected.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> tuple(model(np.array([[7, 8, 9, 0]])).shape)
        (1, 4, 16)
    """

    # Inputs that have a default.
    _may_be_missing = frozenset()

    get_layout_map: Any = layout_map_method(ENCODER)

    def __init__(
        self,
        vocabulary_size: int,
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
        attention_position: "LayerPositions" = None,
        max_sequence_length: int | None = None,
        character_vocabulary_size: int | None = None,
        num_segments: int | None = None,
        scale_embedding: bool = True,
        normalize_embedding: bool = False,
        embedding_dim: int | None = None,
        share_blocks: bool = False,
        initializer: Initializer | None = None,
        pad_id: int = 0,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.positive_int("num_layers", num_layers, most=checks.MOST_LAYERS)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.choice(
            "position_embedding",
            position_embedding,
            ("sinusoidal", "learned", None),
        )
        positions = layer_positions(attention_position, num_layers)
        checks.boolean("scale_embedding", scale_embedding)
        checks.boolean("normalize_embedding", normalize_embedding)
        checks.boolean("share_blocks", share_blocks)
        if embedding_dim is not None:
            checks.positive_int("embedding_dim", embedding_dim)
        if max_sequence_length is not None:
            checks.positive_int("max_sequence_length", max_sequence_length)
        if num_segments is not None:
            checks.positive_int("num_segments", num_segments)
        if character_vocabulary_size is not None:
            checks.positive_int(
                "character_vocabulary_size", character_vocabulary_size
            )
        checks.token_id("pad_id", pad_id)
        if pad_id not in range(vocabulary_size):
            raise ValueError(
                f"`pad_id` must lie in [0, {vocabulary_size}). "
                f"Received: pad_id={pad_id!r}"
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
        config.check_layers(num_layers)
        if share_blocks and (
            isinstance(config.sliding_window, tuple)
            or isinstance(attention_position, (list, tuple))
        ):
            raise ValueError(
                "`sliding_window` and `attention_position` must not be lists "
                "if all layers share one block. Received: share_blocks=True"
            )
        if share_blocks and config.skip_first_norm:
            raise ValueError(
                "`skip_first_norm` must be False if all layers share one "
                "block. Received: skip_first_norm=True, share_blocks=True"
            )
        check_sizes(
            *block_sizes("block_0", config),
            ("vocabulary_size", vocabulary_size, VOCABULARY, 0),
        )
        super().__init__(**kwargs)
        self._block_config = config
        config.set_attributes(self)
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.position_embedding = position_embedding
        self.attention_position: Any = as_attribute(attention_position)
        self.max_sequence_length = max_sequence_length
        self.character_vocabulary_size = character_vocabulary_size
        self.num_segments = num_segments
        self.scale_embedding = scale_embedding
        self.normalize_embedding = normalize_embedding
        self.embedding_dim = embedding_dim
        self.share_blocks = share_blocks
        self.initializer: Initializer = initializer and keras.initializers.get(
            initializer
        )
        self.pad_id = pad_id
        self._make_embeddings()
        self._make_blocks(positions)
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        return self.encode(inputs, training=training)[0]

    if TYPE_CHECKING:
        __call__ = call

    def encode(
        self, inputs: Nest, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encodes the inputs, and returns the token positions too.

        Args:
            inputs: as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            Float (B, T, D), and int32 (B, T): positions, counted in tokens, -1
            at padding.
        """
        parts = self.check_inputs(inputs)
        parts = parts if isinstance(parts, dict) else {"token_ids": parts}
        token_ids = parts["token_ids"]
        token_mask = parts.get(_MASK)
        if token_mask is None:
            token_mask = ops.not_equal(token_ids, self.pad_id)
        packing_ids = parts.get(PACKING_IDS)
        if packing_ids is None:
            positions = positions_from_mask(token_mask)
        else:
            positions = sentence_positions(packing_ids, token_mask)
        x = self._embed(parts, positions)
        x = self._dropout_layer(x, training=training)
        if self._projection is not None:
            x = self._projection(x)
        for i in range(self.num_layers):
            block = self._blocks[0 if self.share_blocks else i]
            x = block(
                x,
                positions=positions,
                training=training,
                segment_ids=packing_ids,
            )
        if self._norm is not None:
            x = self._norm(x)
        return x, positions

    def _embed(self, parts, positions):
        """Returns the normalized sum of all embeddings."""
        token_ids = parts["token_ids"]
        x = self._token_embedding(token_ids)
        if self._segment_embedding is not None:
            segments = parts.get("segment_ids")
            if segments is None:
                segments = ops.zeros_like(token_ids)
            x = x + self._segment_embedding(segments)
        if self._character_embedding is not None:
            x = x + self._character_embedding(parts["character_ids"])
        if self._position_embedding is not None:
            x = self._position_embedding(x, positions=positions)
        return self._embedding_norm(x) if self.normalize_embedding else x

    def get_quantization_layer_structure(
        self, mode: str | None = None
    ) -> dict[str, Any] | None:
        """Returns the embedding and the blocks, for calibration.

        The ids for calibration are token ids, all of segment 0; None if the
        model has another input that it needs.
        """
        if self.character_vocabulary_size is not None:
            return None

        def embed(token_ids):
            x = self._embed({"token_ids": token_ids}, None)
            return x if self._projection is None else self._projection(x)

        return {"pre_block_layers": [embed], "sequential_blocks": self._blocks}

    def block_stack(self) -> BlockStack:
        """Returns the blocks and the final norm."""
        return make_stack(self._blocks, self._norm)

    def token_logits(self, x: TensorLike) -> Tensor:
        """Computes logits over the vocabulary with the embedding matrix.

        Args:
            x: float (B, T, D), or (B, T, `embedding_dim`).

        Returns:
            Float (B, T, V).
        """
        return self._token_embedding.logits(x)

    def _vocabulary_sizes(self):
        """Returns the number of ids of each input, by name."""
        sizes = {
            "token_ids": self.vocabulary_size,
            "character_ids": self.character_vocabulary_size,
            "segment_ids": self.num_segments,
        }
        return {name: size for name, size in sizes.items() if size is not None}

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        names = self._vocabulary_sizes().keys() - self._may_be_missing
        if names == {"token_ids"}:
            return ids_spec()
        return {
            name: ids_spec(None) if name == "character_ids" else ids_spec()
            for name in sorted(names)
        }

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        parts = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        sizes = self._vocabulary_sizes()
        needed = sizes.keys() - self._may_be_missing
        optional = {_MASK, PACKING_IDS}
        if needed - parts.keys() or parts.keys() - sizes.keys() - optional:
            raise ValueError(
                f"`inputs` must contain {' and '.join(sizes)}. "
                f"Received: {' and '.join(parts)}"
            )
        axes = "batch", "length", "characters"
        checked = {
            name: check_ids(
                name, parts[name], size, axes[: 2 + (name == "character_ids")]
            )
            for name, size in sizes.items()
            if name in parts
        }
        tokens = tuple(checked["token_ids"].shape)
        for name, what in _ONE_FOR_EACH_TOKEN.items():
            shape = tuple(checked.get(name, checked["token_ids"]).shape)
            if not checks.fits(shape[:2], tokens):
                raise ValueError(
                    f"`{name}` must have {what} for each token of {tokens}. "
                    f"Received: shape {shape}"
                )
        if (
            self.max_sequence_length is not None
            and (known_size(tokens[1]) or 0) > self.max_sequence_length
        ):
            raise ValueError(
                "`token_ids` must not be longer than "
                f"max_sequence_length={self.max_sequence_length}. Received: "
                f"{tokens[1]} tokens"
            )
        if _MASK in parts:
            checked[_MASK] = check_mask(parts[_MASK], tokens)
        if PACKING_IDS in parts:
            checked[PACKING_IDS] = check_packing_ids(parts[PACKING_IDS], tokens)
        return checked if isinstance(inputs, dict) else checked["token_ids"]

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the vectors."""
        if isinstance(inputs_shape, dict):
            inputs_shape = inputs_shape["token_ids"]
        return (*inputs_shape, self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config() | self._block_config.get_config()
        for name in (
            "vocabulary_size",
            "num_layers",
            "hidden_dim",
            "position_embedding",
            "max_sequence_length",
            "character_vocabulary_size",
            "num_segments",
            "scale_embedding",
            "normalize_embedding",
            "embedding_dim",
            "share_blocks",
            "pad_id",
        ):
            config[name] = getattr(self, name)
        config["initializer"] = self.initializer and (
            keras.initializers.serialize(self.initializer)
        )
        config["attention_position"] = serialized_position(
            self.attention_position
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its attention position."""
        return super().from_config(with_position(config))

    @property
    def _embedding_width(self):
        return self.embedding_dim or self.hidden_dim

    def _make_embeddings(self):
        dtype, width = self.dtype_policy, self._embedding_width
        self._token_embedding = self._table(
            self.vocabulary_size, "token_embedding"
        )
        self._segment_embedding = None
        if self.num_segments is not None:
            self._segment_embedding = self._table(
                self.num_segments, "segment_embedding"
            )
        self._character_embedding = None
        if self.character_vocabulary_size is not None:
            self._character_embedding = CharacterEmbedding(
                self.character_vocabulary_size,
                width,
                pad_id=self.pad_id,
                dtype=dtype,
                name="character_embedding",
            )
            self._character_embedding.build()
        self._position_embedding = None
        if self.position_embedding is not None:
            self._position_embedding = PositionalEmbedding(
                kind=self.position_embedding,
                max_sequence_length=self.max_sequence_length,
                dtype=dtype,
                name="positions",
                **self._initializers("initializer"),
            )
            self._position_embedding.build((None, None, width))
        if self.normalize_embedding:
            self._embedding_norm = self._make_norm("embedding_norm", width)
        self._dropout_layer = Dropout(self.dropout, dtype=dtype)
        self._projection = None
        if self.embedding_dim is not None:
            self._projection = keras.layers.Dense(
                self.hidden_dim,
                dtype=dtype,
                name="embedding_projection",
                **self._initializers("kernel_initializer"),
            )
            self._projection.build((None, None, width))

    def _table(self, size, name):
        layer = TokenEmbedding(
            size,
            self._embedding_width,
            scale=self.scale_embedding,
            pad_id=None,  # the model passes positions on, not masks
            dtype=self.dtype_policy,
            name=name,
            **self._initializers("initializer"),
        )
        layer.build()
        return layer

    def _make_blocks(self, positions):
        width = (None, None, self.hidden_dim)
        self._blocks = [
            EncoderBlock(
                attention_position=positions[i],
                dtype=self.dtype_policy,
                name=f"block_{i}",
                **self._initializers("kernel_initializer"),
                **self._block_config.of_layer(i),
            )
            for i in range(1 if self.share_blocks else self.num_layers)
        ]
        for block in self._blocks:
            block.build(width)
        self._norm = None
        if self._block_config.needs_final_norm:
            self._norm = self._make_norm("norm", self.hidden_dim)

    def _make_norm(self, name, width):
        norm = make_norm(
            self.normalization,
            self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )
        norm.build((None, None, width))
        return norm

    def _initializers(self, name):
        """Returns keyword arguments of a layer; {} keeps its own default."""
        if self.initializer is None:
            return {}
        return {name: self.initializer.clone()}
