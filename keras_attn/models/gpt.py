"""GPT, the causal language model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.blocks import DecoderBlock
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.layers.attention_position import (
    as_attribute,
    layer_positions,
    serialized_position,
    with_position,
)
from keras_attn.layers.gelu_tanh import gelu_tanh
from keras_attn.models.causal_lm import CausalLM
from keras_attn.models.layout import check_rules
from keras_attn.models.packing import PACKING_IDS, sentence_positions
from keras_attn.models.prompt_state import (
    PromptState,
    cache_of,
    check_state,
    read_tokens,
)
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Activation, Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding import DecodingState
    from keras_attn.layers.attention_position import LayerPositions


_SIZES = {
    "small": (12, 12, 768),
    "medium": (24, 16, 1024),
    "large": (36, 20, 1280),
    "xl": (48, 25, 1600),
}


@keras.saving.register_keras_serializable(package="keras_attn")
class GPT(CausalLM):
    """GPT causal language model: predicts the next token.

        h = Blocks(E[x] + P)
        logits = LayerNorm(h) E^T

    Each block is a causal self-attention and a feed-forward network. The
    equation is GPT-2, pre-norm (Radford et al. 2019, "Language Models are
    Unsupervised Multitask Learners"). `normalize_first=False` gives GPT,
    post-norm without the final norm (Radford et al. 2018, "Improving Language
    Understanding by Generative Pre-Training"). `GPT.gpt` and `GPT.gpt2` create
    the published sizes.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int. D.
        intermediate_dim: int. Width inside the feed-forward networks; default
            4 D.
        dropout: float in [0, 1). On sublayer outputs, and on embeddings.
        embedding_dropout: float in [0, 1). On embeddings, if it differs from
            `dropout`. Default None: `dropout`.
        attention_dropout: float in [0, 1). On attention weights.
        activation_dropout: float in [0, 1). Inside feed-forward networks.
        activation: name or callable. Default `gelu_tanh`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm after them.
            Default True.
        epsilon: float. Added to the variance in layer norms.
        position_embedding: `"learned"`, `"sinusoidal"`, or None: the position
            embedding added to token embeddings.
        attention_position: `AttentionPosition`, such as `RotaryPosition`,
            shared by the self-attention layers of all blocks, or a list with
            one or None for each layer. Default None.
        max_sequence_length: int. The longest sequence, in tokens, prompt and
            generated tokens together; a learned table has as many rows. None:
            no limit, not allowed with learned positions.
        tie_word_embeddings: bool. Whether the output uses the embedding's
            matrix. Default True.
        pad_id: int. The id of padding tokens. None: there is no padding id, as
            in GPT-2, and finished sequences are padded with `end_id`. It
            differs from `start_id` and `end_id`.
        start_id: int. Never generated. None: there is none.
        end_id: int, or a list of int, each of which ends a sequence; the first
            one fills finished sequences if `pad_id` is None. None: sequences
            never end, for example when tokens are the characters of one long
            text.
        scale_embedding: bool. Multiply embeddings by sqrt(D), as in Gemma.
            Default False.
        logits_soft_cap: float > 0. Bound c of the logits, c tanh(logit / c),
            as in Gemma 2. Default None: no bound.
        **kwargs: other options of `DecoderBlock` (`key_dim`,
            `num_key_value_heads`, `use_bias`, `sliding_window`, one value
            or a list with one for each layer, `normalization`,
            `normalize_output`, `use_parallel_residual`, `qk_norm`,
            `attention_soft_cap`, `use_sinks`, `layer_scale`,
            `stochastic_depth`, `gate_limit`, `use_qkv_bias`,
            `skip_first_norm`, `num_experts`, `num_experts_per_tok`,
            `router_aux_loss_coef`) and arguments of `keras.Model` (`name`,
            `dtype`, ...).

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"`
            and, optionally, bool (B, T) as `"padding_mask"`, True at tokens.
            Default: True except at `pad_id`. Padding may be on either side:
            positions count tokens only. For rows of several sentences, a dict
            also has int32 (B, T) as `"packing_ids"`, one id per sentence of a
            row from 1 on, 0 at padding: each sentence is computed as if alone.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, V): logits of the next token at each position.

    Raises:
        ValueError: arguments out of range; ids of another rank, not integers,
            or out of range; sequences longer than `max_sequence_length`; a mask
            of another shape.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     max_sequence_length=32)
        >>> tuple(model(np.array([[7, 8, 9]])).shape)
        (1, 3, 100)
        >>> model.generate([[7, 8, 9], [5]], max_new_tokens=4).tokens.shape
        (2, 1, 4)
    """

    _chunks_loss = True
    _more_inputs = (PACKING_IDS,)

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 12,
        num_heads: int = 12,
        hidden_dim: int = 768,
        intermediate_dim: int | None = None,
        dropout: float = 0.1,
        embedding_dropout: float | None = None,
        attention_dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: Activation = gelu_tanh,
        gated: bool = False,
        normalize_first: bool = True,
        epsilon: float = 1e-5,
        position_embedding: str | None = "learned",
        attention_position: "LayerPositions" = None,
        max_sequence_length: int | None = 1024,
        tie_word_embeddings: bool = True,
        pad_id: int | None = 0,
        start_id: int | None = 1,
        end_id: int | Sequence[int] | None = 2,
        scale_embedding: bool = False,
        logits_soft_cap: float | None = None,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("hidden_dim", hidden_dim)
        if intermediate_dim is None:
            intermediate_dim = 4 * hidden_dim
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
        checks.positive_int("num_layers", num_layers, most=checks.MOST_LAYERS)
        positions = layer_positions(attention_position, num_layers)
        super().__init__(
            config,
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            position_embedding=position_embedding,
            max_sequence_length=max_sequence_length,
            tie_word_embeddings=tie_word_embeddings,
            embedding_dropout=embedding_dropout,
            scale_embedding=scale_embedding,
            logits_soft_cap=logits_soft_cap,
            pad_id=pad_id,
            start_id=start_id,
            end_id=end_id,
            **kwargs,
        )
        self.embedding_dropout = embedding_dropout
        self.attention_position: Any = as_attribute(attention_position)
        self._blocks = [
            DecoderBlock(
                attention_position=positions[i],
                kernel_initializer=self._initial_weights(),
                dtype=self.dtype_policy,
                name=f"block_{i}",
                **config.of_layer(i),
            )
            for i in range(num_layers)
        ]
        for block in self._blocks:
            block.build((None, None, hidden_dim))
        self.built = True
        check_rules(self)

    @classmethod
    def gpt(cls, vocabulary_size: int = 40478, **kwargs: Any) -> Self:
        """Returns a model with the size of GPT: 117 M parameters."""
        return cls(
            vocabulary_size,
            **{"normalize_first": False, "max_sequence_length": 512, **kwargs},
        )

    @classmethod
    def gpt2(
        cls, size: str = "small", vocabulary_size: int = 50257, **kwargs: Any
    ) -> Self:
        """Returns a model with one of the sizes of GPT-2.

        Args:
            size: `"small"`, 124 M parameters, `"medium"`, 355 M, `"large"`,
                774 M, or `"xl"`, 1,558 M.
            vocabulary_size: int. V.
            **kwargs: other arguments.
        """
        checks.choice("size", size, tuple(_SIZES))
        checks.positive_int("vocabulary_size", vocabulary_size)
        layers, heads, width = _SIZES[size]
        ends = dict.fromkeys(("start_id", "end_id"), vocabulary_size - 1)
        return cls(
            vocabulary_size,
            layers,
            heads,
            width,
            **{"pad_id": None, **ends, **kwargs},
        )

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        x, _ = self.encode(inputs, training=training)
        return self._logits(x)

    if TYPE_CHECKING:
        __call__ = call

    def encode(
        self, inputs: Nest, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns the hidden states from which the logits are computed.

        Args:
            inputs: as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            Float (B, T, D), after the final norm if there is one; and int32
            (B, T), positions, counted in tokens, -1 at padding, or None if
            there is no padding.
        """
        inputs = self.check_inputs(inputs)
        packing_ids = None
        if isinstance(inputs, dict):
            packing_ids = inputs.get(PACKING_IDS)
        token_ids, token_mask = self._ids_and_mask(inputs)
        positions = None
        if packing_ids is not None:
            positions = sentence_positions(packing_ids, token_mask)
        elif token_mask is not None:
            positions = positions_from_mask(token_mask)
        x = self._dropout_layer(
            self._embed(token_ids, positions), training=training
        )
        for block in self._blocks:
            x = block(
                x,
                positions=positions,
                training=training,
                segment_ids=packing_ids,
            )
        return self._normalized(x), positions

    def decode_step(
        self,
        tokens: TensorLike,
        state: "DecodingState",
        token_mask: TensorLike | None = None,
    ) -> "tuple[Tensor, DecodingState]":
        """Reads the next tokens of every hypothesis.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.
            token_mask: bool (R, T), True for tokens, False for padding after
                them. Default None: no padding.

        Returns:
            Logits, float (R, T, V), and the next `DecodingState`.
        """
        return self._decode(tokens, state, token_mask)

    def check_speculation(self, name: str) -> None:
        """Raises ValueError unless steps may read tokens that are dropped.

        Args:
            name: str. Name of the argument, for the message.
        """
        positions = self.attention_position
        if not isinstance(positions, (list, tuple)):
            positions = [positions]
        if any(p is not None and p.depends_on_length for p in positions):
            raise ValueError(
                f"`{name}` must have positions that do not depend on the "
                "tokens that follow, to be used in speculative decoding. "
                "Received: a model with depends_on_length=True"
            )

    def read(
        self, inputs: Nest | None = None, state: PromptState | None = None
    ) -> PromptState:
        """Reads prompts once, for `generate` and `stream` with `state`.

        Args:
            inputs: B rows of ids, as for `generate`: a prompt, or what follows
                the tokens of the state. None: only the tokens of the state that
                have not been read, such as those that `generate` added.
            state: `PromptState`. Default None: the prompt begins here.

        Returns:
            `PromptState`. Only tokens that the given state has not read are
            computed.

        Raises:
            ValueError: invalid ids, another number of rows, more tokens than
                the position table has rows, or rotary positions whose scaling
                depends on the length.
        """
        if state is not None:
            config = self._block_config
            head_dim = config.head_dim(self.hidden_dim)
            check_state(
                state, self.num_layers, config.key_value_heads, head_dim
            )
        # Not bound: a program must not keep the model alive.
        return read_tokens(self, inputs, state, self._read.__func__)

    def _read(self, ids, lengths, before):
        """Returns keys, values and positions with those of new tokens.

        Args:
            ids: int32 (B, T), with anything after the tokens.
            lengths: int32 (B,), of the tokens.
            before: keys, values and positions, or () if there are none.
        """
        rows, count = ids.shape
        if before:
            cache = cache_of(before, count, self.compute_dtype)
        else:
            # A state has all tokens, also in layers with a window.
            cache = self._empty_cache(rows, count)
        token_mask = ops.arange(count, dtype="int32") < lengths[:, None]
        _, cache = self._decode_tokens(ids, cache, (), token_mask)
        heads = self._block_config.key_value_heads
        keys, values = [], []
        for layer in range(self.num_layers):
            key, value, positions = kv.read(cache, layer, heads)
            keys.append(ops.cast(key, "float32"))
            values.append(ops.cast(value, "float32"))
        return keys, values, positions

    def _sources_of_state(self, state):
        lengths = [len(row) for row in state.tokens]
        return {
            "token_ids": state.tokens,
            "lengths": np.array(lengths, "int32"),
            "state": (state.keys, state.values, state.positions),
        }

    def _embed(self, token_ids, positions=None):
        x = self._token_embedding(token_ids)
        if self._position_embedding is not None:
            x = self._position_embedding(x, positions=positions)
        return x

    def get_quantization_layer_structure(
        self, mode: str | None = None
    ) -> dict[str, Any] | None:
        """Returns the embedding and the blocks, for calibration."""
        return {
            "pre_block_layers": [self._embed],
            "sequential_blocks": self._blocks,
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "embedding_dropout": self.embedding_dropout,
            "position_embedding": self.position_embedding,
            "max_sequence_length": self.max_sequence_length,
            "attention_position": serialized_position(self.attention_position),
            "scale_embedding": self.scale_embedding,
            "logits_soft_cap": self.logits_soft_cap,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its attention position."""
        return super().from_config(with_position(config))
