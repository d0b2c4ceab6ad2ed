"""Base class of the causal language models."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.backend import (
    bool_mask,
    known_size,
    reduce_max,
    take_along_axis,
)
from keras_attn.decoding import DecodingState
from keras_attn.decoding.token_rows import check_form
from keras_attn.layers import Dropout, PositionalEmbedding, TokenEmbedding
from keras_attn.layers.normalization import make_norm
from keras_attn.models.block_stack import BlockStack, make_stack
from keras_attn.models.chunked_loss import ChunkedLoss
from keras_attn.models.decoding_weights import DecodingWeights
from keras_attn.models.generative_model import GenerativeModel
from keras_attn.models.input_checks import check_ids, check_mask, ids_spec
from keras_attn.models.layout import (
    CAUSAL_LM,
    VOCABULARY,
    block_sizes,
    check_sizes,
    layout_map_method,
)
from keras_attn.models.packing import (
    PACKING_IDS,
    check_packing_ids,
    refuse_packing,
)
from keras_attn.models.prompt_state import cache_of
from keras_attn.models.prompts import prompt_rows
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.blocks.block_config import BlockConfig


_INITIAL_STDDEV = 0.02  # as published


class CausalLM(ChunkedLoss, GenerativeModel):
    """Base class of `GPT`, `TransformerXL` and `XLNet`.

        logits = LayerNorm(Blocks(E[x])) E^T

    It creates the embeddings, the final norm and the output, and decodes from
    prompts with cached steps. Abstract: a subclass creates `_blocks`, defines
    the forward pass and documents the arguments.

    Args:
        block_config: `BlockConfig`.
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        hidden_dim: int. D.
        position_embedding: `"learned"`, `"sinusoidal"` or None.
        max_sequence_length: int. The longest sequence, in tokens, or None.
        tie_word_embeddings: bool. Whether the output uses the embedding's
            matrix.
        output_bias: bool. Whether the logits have a bias.
        scale_embedding: bool. Whether to multiply embeddings by sqrt(D).
        logits_soft_cap: float > 0. Bound of the logits, or None.
        embedding_dropout: float in [0, 1), or None: that of `block_config`.
        pad_id: int, or None.
        start_id: int, or None.
        end_id: int, a list or tuple of int, or None.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...
    """

    # Further inputs of a call, one per token.
    _more_inputs = ()

    get_layout_map: Any = layout_map_method(CAUSAL_LM)

    def __init__(
        self,
        block_config: "BlockConfig",
        *,
        vocabulary_size: int,
        num_layers: int,
        hidden_dim: int,
        position_embedding: str | None = None,
        max_sequence_length: int | None = None,
        tie_word_embeddings: bool = True,
        output_bias: bool = False,
        scale_embedding: bool = False,
        logits_soft_cap: float | None = None,
        embedding_dropout: float | None = None,
        pad_id: int | None,
        start_id: int | None,
        end_id: int | Sequence[int] | None,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("vocabulary_size", vocabulary_size)
        checks.positive_int("num_layers", num_layers, most=checks.MOST_LAYERS)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.choice(
            "position_embedding",
            position_embedding,
            ("learned", "sinusoidal", None),
        )
        if max_sequence_length is not None:
            checks.positive_int("max_sequence_length", max_sequence_length)
        checks.boolean("tie_word_embeddings", tie_word_embeddings)
        checks.boolean("output_bias", output_bias)
        checks.boolean("scale_embedding", scale_embedding)
        if logits_soft_cap is not None:
            checks.positive("logits_soft_cap", logits_soft_cap)
        if embedding_dropout is not None:
            checks.fraction("embedding_dropout", embedding_dropout)
        block_config.head_dim(hidden_dim, "`hidden_dim`")
        block_config.check_layers(num_layers)
        check_sizes(
            *block_sizes("block_0", block_config),
            ("vocabulary_size", vocabulary_size, VOCABULARY, 0),
        )
        super().__init__(**kwargs)
        self._block_config = block_config
        block_config.set_attributes(self)
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.position_embedding = position_embedding
        self.max_sequence_length = max_sequence_length
        self.tie_word_embeddings = tie_word_embeddings
        self.output_bias = output_bias
        self.scale_embedding = scale_embedding
        self.logits_soft_cap = logits_soft_cap
        self.pad_id = pad_id
        self.start_id = start_id
        several = isinstance(end_id, (list, tuple))
        self.end_id: Any = tuple(end_id) if several else end_id
        self._check_special_ids(
            optional=("pad_id", "start_id", "end_id"),
            never_padding=("start_id", "end_id"),
            several=("end_id",) if several else (),
        )
        dtype = self.dtype_policy
        width = (None, None, hidden_dim)
        self._token_embedding = TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            scale=scale_embedding,
            pad_id=None,  # the model passes positions on, not masks
            initializer=self._initial_weights(),
            logits_bias=output_bias and tie_word_embeddings,
            dtype=dtype,
            name="token_embedding",
        )
        self._token_embedding.build()
        self._position_embedding = None
        if position_embedding is not None:
            self._position_embedding = PositionalEmbedding(
                kind=position_embedding,
                max_sequence_length=max_sequence_length,
                initializer=self._initial_weights(),
                dtype=dtype,
                name="positions",
            )
            self._position_embedding.build(width)
        self._dropout_layer = Dropout(
            self.dropout if embedding_dropout is None else embedding_dropout,
            dtype=dtype,
        )
        self._norm = None
        if block_config.needs_final_norm:
            self._norm = make_norm(
                self.normalization, self.epsilon, dtype=dtype, name="norm"
            )
            self._norm.build(width)
        self._output_dense = None
        if not tie_word_embeddings:
            self._output_dense = keras.layers.Dense(
                vocabulary_size,
                use_bias=output_bias,
                kernel_initializer=self._initial_weights(),
                dtype=dtype,
                name="output",
            )
            self._output_dense.build(width)

    @property
    def source_vocabulary_size(self) -> int:
        """V, the vocabulary size of prompts."""
        return self.vocabulary_size

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return ids_spec()

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        parts = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        optional = "padding_mask", *self._more_inputs
        if "token_ids" not in parts or parts.keys() - {"token_ids", *optional}:
            raise ValueError(
                "`inputs` must contain token_ids, and optionally "
                f"{' and '.join(optional)}. Received: {' and '.join(parts)}"
            )
        ids = check_ids("token_ids", parts["token_ids"], self.vocabulary_size)
        length = ids.shape[1]
        if (
            self.max_sequence_length is not None
            and (known_size(length) or 0) > self.max_sequence_length
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
        if PACKING_IDS in parts:
            checked[PACKING_IDS] = check_packing_ids(
                parts[PACKING_IDS], ids.shape
            )
        return checked

    def read_sources(self, inputs: Nest) -> dict[str, Any]:
        """Reads and checks the prompts of `generate` and `stream`.

        Args:
            inputs: B rows of ids: a list of lists or of 1-D arrays, of any
                length; int (B, S), padded on either side; or a dict of such an
                array, `"token_ids"`, and its `"padding_mask"`.

        Returns:
            Dict: `"token_ids"`, object array (B,) of int32 arrays, and
            `"lengths"`, int32 (B,).

        Raises:
            ValueError: invalid ids, or a row without tokens.
        """
        rows = prompt_rows(inputs, self.pad_id, self.vocabulary_size)
        lengths = [len(row) for row in rows]
        return {"token_ids": rows, "lengths": np.array(lengths, "int32")}

    def start_decoding(
        self,
        inputs: Nest,
        max_new_tokens: int,
        keep_all_tokens: bool = False,
    ) -> DecodingState:
        """Reads the prompts into a cache.

        Args:
            inputs: int32 (B, S) prompts, or a dict with them as `"token_ids"`
                and either the other inputs of a call or int32 (B,) `"lengths"`,
                and the keys, values and positions of a `PromptState` with all
                tokens but the last as `"state"`.
            max_new_tokens: int. The maximum number of generated tokens.
            keep_all_tokens: bool. Whether layers with a sliding window, too,
                keep all tokens, so that `keras_attn.cache.crop` can remove the
                last ones. Default False.

        Returns:
            `DecodingState`, with room for `max_new_tokens` tokens after each
            prompt.

        Raises:
            ValueError: prompts that are not valid, or of unknown length.
        """
        state: Any = ()
        is_dict = isinstance(inputs, dict)
        if is_dict and "state" in inputs:
            state = inputs["state"]
            inputs = {n: part for n, part in inputs.items() if n != "state"}
        self._check_start(inputs, max_new_tokens)
        checks.boolean("keep_all_tokens", keep_all_tokens)
        for part in inputs.values() if is_dict else [inputs]:
            check_form("inputs", part)
        token_ids, token_mask = self._prompts(inputs)
        rows, length = ops.shape(token_ids)
        if ops.is_tensor(length):
            raise ValueError(
                "`inputs` must have a length that is known when the program is "
                f"compiled or exported. Received: shape {token_ids.shape}"
            )
        indices = ops.arange(length, dtype="int32")
        last = reduce_max(
            ops.where(token_mask, indices, 0), axis=1, keepdims=True
        )
        tokens = ops.take_along_axis(token_ids, last, axis=1)
        if state:
            cache = cache_of(state, max_new_tokens, self.compute_dtype)
            return DecodingState((), cache, tokens)
        cache = self._empty_cache(
            rows,
            max_new_tokens + length - 1,
            None if keep_all_tokens else self._block_config.sliding_window,
        )
        if length > 1:
            # The first step reads the last token.
            before = ops.logical_and(token_mask, indices < last)[:, :-1]
            lengths = ops.sum(
                ops.cast(token_mask, "int32"), axis=1, keepdims=True
            )
            _, cache = self._decode_tokens(
                token_ids[:, :-1], cache, (), before, lengths
            )
        return DecodingState((), cache, tokens)

    def _empty_cache(self, rows, slots, sliding_window=None):
        config = self._block_config
        head_dim = config.head_dim(self.hidden_dim)
        return kv.empty(
            rows,
            slots,
            self.num_layers,
            config.key_value_heads,
            head_dim,
            head_dim,
            self.compute_dtype,
            sliding_window,
        )

    def prompt_tokens(self, inputs: Nest) -> Tensor:
        """Returns the tokens of the prompts, for the rules of a strategy.

        Args:
            inputs: as for `start_decoding`.

        Returns:
            Int32 (B, S): each prompt at the end of its row, after -1.
        """
        token_ids, token_mask = self._prompts(inputs)
        length = token_ids.shape[1]
        indices = ops.arange(length, dtype="int32")
        token_ids = ops.where(token_mask, ops.cast(token_ids, "int32"), -1)
        last = reduce_max(
            ops.where(token_mask, indices, 0), axis=1, keepdims=True
        )
        found = indices - (length - 1 - last)
        return ops.where(
            found < 0,
            -1,
            take_along_axis(token_ids, ops.maximum(found, 0)),
        )

    def prepare_weights(self) -> Any:
        """Returns weights in the layout that decoding steps read fastest."""
        tied = self._output_dense is None
        return DecodingWeights.of(
            self._blocks, self._token_embedding if tied else None
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
        return self._decode(tokens, state)

    def _decode(self, tokens, state, token_mask=None):
        """Returns the logits of new tokens, and the next `DecodingState`."""
        self._check_step(tokens, state)
        weights = state.weights or DecodingWeights()
        x, cache = self._decode_tokens(
            ops.maximum(tokens, 0),
            state.hypothesis,
            weights.blocks,
            token_mask,
        )
        logits = self._logits(self._normalized(x), weights.output_matrix)
        return logits, state._replace(hypothesis=cache)

    def _decode_tokens(
        self, tokens, cache, weights, token_mask=None, lengths=()
    ):
        """Returns the last block's output for new tokens, and the cache."""
        count = tokens.shape[1]
        positions, cache = kv.open_slots(cache, count, token_mask)
        checks.batch("tokens", tokens.shape, positions.shape[0])
        step = kv.DecodingStep(positions, weights=weights, lengths=lengths)
        x = self._token_embedding(tokens)
        if self._position_embedding is not None:
            x = self._position_embedding.decode_step(
                x, positions, kv.slots(cache)
            )
        for layer, block in enumerate(self._blocks):
            x, cache = block.decode_step(x, cache, layer, step)
        return x, kv.close_slots(cache, count)

    def _prompts(self, inputs):
        """Returns token ids (B, S) and their token mask, bool (B, S)."""
        if isinstance(inputs, dict) and "lengths" in inputs:
            token_ids = inputs["token_ids"]
            indices = ops.arange(ops.shape(token_ids)[1], dtype="int32")
            # Rows are padded with -1 if `pad_id` and `end_id` are both None.
            token_ids = ops.maximum(token_ids, 0)
            return token_ids, indices < inputs["lengths"][:, None]
        refuse_packing(inputs, "each prompt is a row")
        token_ids, token_mask = self._ids_and_mask(self.check_inputs(inputs))
        if token_mask is None:
            token_mask = ops.ones_like(token_ids, dtype="bool")
        return token_ids, token_mask

    def _check_room(self, sources, max_new_tokens):
        longest = int(sources["lengths"].max())
        # The last generated token is never read.
        if self.max_sequence_length is not None and (
            longest + max_new_tokens - 1 > self.max_sequence_length
        ):
            raise ValueError(
                "`inputs` and `max_new_tokens` together must not exceed the "
                "position table of "
                f"max_sequence_length={self.max_sequence_length} rows. "
                f"Received: {longest} tokens and "
                f"max_new_tokens={max_new_tokens}"
            )

    def _ids_and_mask(self, inputs):
        """Returns token ids and the token mask, None if all are tokens."""
        if not isinstance(inputs, dict):
            inputs = {"token_ids": inputs}
        token_ids, token_mask = inputs["token_ids"], inputs.get("padding_mask")
        if token_mask is not None:
            return token_ids, bool_mask("padding_mask", token_mask)
        if self.pad_id is None:
            return token_ids, None
        return token_ids, ops.not_equal(token_ids, self.pad_id)

    def block_stack(self) -> BlockStack:
        """Returns the blocks, the final norm and the output layer."""
        return make_stack(self._blocks, self._norm, self._logits)

    def _normalized(self, x):
        return x if self._norm is None else self._norm(x)

    def _output_parts(self):
        return self._output_dense, self._token_embedding

    def _logits(self, x, output_matrix=()):
        if self._returns_hidden:
            return x
        if self._output_dense is not None:
            logits = self._output_dense(x)
        else:
            logits = self._token_embedding.logits(x, output_matrix)
        if self.logits_soft_cap is None:
            return logits
        return self.logits_soft_cap * ops.tanh(logits / self.logits_soft_cap)

    @staticmethod
    def _initial_weights():
        return keras.initializers.RandomNormal(stddev=_INITIAL_STDDEV)

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        if isinstance(inputs_shape, dict):
            inputs_shape = inputs_shape["token_ids"]
        return (*inputs_shape, self.vocabulary_size)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config() | self._block_config.get_config()
        for name in (
            "vocabulary_size",
            "num_layers",
            "hidden_dim",
            "tie_word_embeddings",
            "pad_id",
            "start_id",
            "end_id",
        ):
            value = getattr(self, name)
            config[name] = list(value) if isinstance(value, tuple) else value
        return config
