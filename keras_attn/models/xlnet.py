"""XLNet, the permutation language model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.blocks import TwoStreamBlock
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.layers import XLNetPosition
from keras_attn.models.causal_lm import CausalLM
from keras_attn.models.decoding_weights import DecodingWeights
from keras_attn.models.input_checks import check_ids, check_mask
from keras_attn.models.layout import check_rules
from keras_attn.models.permutation_order import content_and_query_visibility
from keras_attn.models.segment_recurrence import (
    as_tensors,
    check_memory_arguments,
    check_segment_inputs,
    copy_with_memory,
    document_ids,
    empty_memory,
    make_carried_memory,
    memory_and_carrier,
    next_memory,
    split_inputs,
)
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Activation, Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.protocol import DecodingState
    from keras_attn.models.segment_memory import SegmentMemory


_TARGETS = "target_positions", "target_mapping"
_MAX_SEGMENTS = 2**31 - 1  # segment ids are compared, not looked up


@keras.saving.register_keras_serializable(package="keras_attn")
class XLNet(CausalLM):
    """XLNet permutation language model.

        max  E_z  sum_t  log p(x_{z_t} | x_{z_1}, ..., x_{z_{t-1}})

    Yang et al. 2019, eq. 3 and sec. 2.3, https://arxiv.org/abs/1906.08237; z_t
    is the t-th position in the prediction order z. Tokens keep their positions;
    only the attention mask follows z
    (`keras_attn/models/permutation_order.py`). Two streams share all weights:
    the content stream h, which sees its own token, and the query stream g,
    which knows its position but not its token:

        g_t = Attention(Q = g_t, KV = h of the tokens before t in z)
        h_t = Attention(Q = h_t, KV = h of the tokens up to t in z)
        logits = g^L E^T + c

    It supports a memory of earlier segments like `TransformerXL`. As an encoder
    of `SequenceClassifier`, `TokenClassifier` or `SpanExtractor` it is the
    content stream with full attention. Then freeze the weights that only
    predictions use,
    `keras_attn.training.freeze(model, "query_vector$|logits_bias$")`; otherwise
    Keras warns about weights without gradients.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int, even. D.
        intermediate_dim: int. Width inside the feed-forward networks; default
            4 D.
        memory_length: int >= 0. M, in tokens. Default 0.
        stateful_batch_size: int. B, the batch size for which the model carries
            a memory. Default None: it carries none.
        bidirectional_data: bool. Whether the second half of each batch is read
            from right to left, with negated distances. Default False.
        dropout: float in [0, 1). On embeddings, on sublayer outputs and before
            the output layer.
        attention_dropout: float in [0, 1). On attention weights.
        activation_dropout: float in [0, 1). Inside feed-forward networks.
        activation: name or callable. Default `"gelu"`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm after them.
            Default False.
        epsilon: float. Added to the variance in layer norms.
        tie_word_embeddings: bool. Whether the output uses the embedding's
            matrix. Default True.
        output_bias: bool. Whether the logits have a bias c. Default True.
        pad_id: int. The id of padding tokens, unlike `start_id` and `end_id`.
            None: there is none.
        start_id: int. Never generated. None: there is none.
        end_id: int, or a list of int, each of which ends a sequence. None:
            sequences never end.
        **kwargs: other options of `TwoStreamBlock` (`key_dim`,
            `num_key_value_heads`, `use_bias`, `sliding_window`, one value
            or a list with one for each layer, `normalization`,
            `normalize_output`, `use_parallel_residual`, `qk_norm`,
            `attention_soft_cap`, `use_sinks`, `layer_scale`,
            `stochastic_depth`, `gate_limit`, `use_qkv_bias`,
            `skip_first_norm`, `num_experts`, `num_experts_per_tok`,
            `router_aux_loss_coef`) and arguments of `keras.Model` (`name`,
            `dtype`, ...).

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"` and
            any of

            * `"segment_ids"`, int32 (B, T), the text to which a token belongs;
              the memory belongs to text 0. Default: no distinction;
            * `"padding_mask"`, bool (B, T), True at tokens. Default: True
              except at `pad_id`;
            * `"order"`, int32 (B, T), >= 0: the step at which a token is
              predicted, the inverse of z, `np.argsort(z)`. A token sees tokens
              of the same and of lower steps. Default: full attention;
            * `"permutation_mask"`, bool (B, T, T), instead of an order: True
              where token t may see token s. The content stream always sees its
              own token;
            * `"target_positions"`, int32 (B, P), the positions in [0, T) to
              predict, -1 for none. Their queries see only tokens of lower
              steps, or those that the mask allows. Needs an order or a mask;
            * `"target_mapping"`, (B, P, T), instead of target positions: their
              one-hot encoding. Without an order or a mask a query sees all
              tokens, including its own, as in transformers;
            * `"document_starts"` and `"memory"`, as for `TransformerXL`.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, P, V), logits of the target tokens; without targets, (B, T,
        V), logits of the content stream.

    Raises:
        ValueError: arguments out of range; ids of the wrong rank, not integers,
            or out of range; inputs whose shapes do not match the tokens; both
            an order and a mask, or both target positions and a target mapping.

    Examples:
        >>> model = keras_attn.models.XLNet(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16)
        >>> logits = model({
        ...     "token_ids": np.array([[7, 8, 9, 10]]),
        ...     "order": np.array([[2, 0, 3, 1]]),
        ...     "target_positions": np.array([[0, 2]])})
        >>> tuple(logits.shape)
        (1, 2, 100)
    """

    _chunks_loss = True

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 12,
        num_heads: int = 12,
        hidden_dim: int = 768,
        intermediate_dim: int | None = None,
        memory_length: int = 0,
        stateful_batch_size: int | None = None,
        bidirectional_data: bool = False,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: Activation = "gelu",
        gated: bool = False,
        normalize_first: bool = False,
        epsilon: float = 1e-12,
        tie_word_embeddings: bool = True,
        output_bias: bool = True,
        pad_id: int | None = 0,
        start_id: int | None = 1,
        end_id: int | Sequence[int] | None = 2,
        **kwargs: Any,
    ) -> None:
        check_memory_arguments(memory_length, stateful_batch_size)
        checks.positive_int("hidden_dim", hidden_dim)
        checks.boolean("bidirectional_data", bidirectional_data)
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
        super().__init__(
            config,
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            tie_word_embeddings=tie_word_embeddings,
            output_bias=output_bias,
            pad_id=pad_id,
            start_id=start_id,
            end_id=end_id,
            **kwargs,
        )
        self.memory_length = memory_length
        self.stateful_batch_size = stateful_batch_size
        self.bidirectional_data = bidirectional_data
        self._blocks = [
            TwoStreamBlock(
                attention_position=XLNetPosition(
                    num_heads,
                    config.head_dim(hidden_dim),
                    hidden_dim,
                    initializer=self._initial_weights(),
                    bias_initializer=self._initial_weights(),
                    dtype=self.dtype_policy,
                    name=f"block_{i}_position",
                ),
                kernel_initializer=self._initial_weights(),
                dtype=self.dtype_policy,
                name=f"block_{i}",
                **config.of_layer(i),
            )
            for i in range(num_layers)
        ]
        for block in self._blocks:
            block.build((None, None, hidden_dim))
        self._carried = make_carried_memory(self)
        self._query_vector = self.add_weight(
            (hidden_dim,),
            initializer=self._initial_weights(),
            name="query_vector",
        )
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        parts = as_tensors(self.check_inputs(inputs))
        memory, carrier = memory_and_carrier(self._carried, parts)
        logits, memory = self._read_segment(parts, memory, training)
        if carrier is not None:
            carrier.write(memory)
        return logits

    if TYPE_CHECKING:
        __call__ = call

    def advance(
        self, inputs: Nest, training: bool | None = None
    ) -> "tuple[Tensor, SegmentMemory]":
        """Applies the model, and returns the memory after the segment.

        Args:
            inputs: as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            The result of a call, and a `SegmentMemory` for the `"memory"` of
            the next call, () if M is 0.
        """
        parts = as_tensors(self.check_inputs(inputs))
        memory, _ = memory_and_carrier(self._carried, parts)
        if not memory:
            memory = empty_memory(self, ops.shape(parts["token_ids"])[0])
        return self._read_segment(parts, memory, training)

    def with_memory(
        self, memory_length: int, stateful_batch_size: int | None = None
    ) -> Self:
        """Returns a copy of the model with another memory length.

        Args:
            memory_length: int >= 0. M.
            stateful_batch_size: int. B, or None.

        Returns:
            A model of the same class with copies of the weights.

        Raises:
            ValueError: an invalid memory length, or weights that the
                constructor does not create, such as adapters or quantized
                weights.
        """
        return copy_with_memory(self, memory_length, stateful_batch_size)

    def _read_segment(self, parts, memory, training):
        token_ids, token_mask = self._ids_and_mask(parts)
        documents = document_ids(parts, memory)
        views = content_and_query_visibility(
            parts, token_mask, memory, self.bidirectional_data, documents
        )
        content, queries, states = self._streams(parts, memory, views, training)
        x = content if queries is None else queries
        logits = self._logits(self._dropout_layer(x, training=training))
        return logits, next_memory(
            memory, states, token_ids, token_mask, documents
        )

    def _streams(self, parts, memory, views, training):
        """Returns the content, the queries or None, and all block inputs."""
        content = self._token_embedding(parts["token_ids"])
        token_mask = views.content.query_positions >= 0
        content = ops.where(token_mask[..., None], content, 0)
        content = self._dropout_layer(content, training=training)
        queries = None
        if views.queries is not None:
            query_positions = views.queries.query_positions
            row = parts["token_ids"][:, :1]
            query_positions = query_positions + ops.zeros_like(
                row, dtype="int32"
            )
            queries = self._queries(
                ops.cast(query_positions, content.dtype)[..., None]
            )
            queries = self._dropout_layer(queries, training=training)
        past = memory.states if memory else [None] * self.num_layers
        states = []
        for block, before in zip(self._blocks, past, strict=True):
            states.append(content)
            content = block(
                content,
                queries=queries,
                past=before,
                content_visibility=views.content,
                query_visibility=views.queries,
                training=training,
            )
            if queries is not None:
                content, queries = content
        content = self._normalized(content)
        if queries is not None:
            queries = self._normalized(queries)
        return content, queries, states

    def _queries(self, like):
        """Returns the initial queries with the leading shape of a tensor."""
        vector = ops.cast(self._query_vector, like.dtype)
        return vector + ops.zeros_like(like[..., :1])

    def encode(
        self, inputs: Nest, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns the content stream of a text.

        Args:
            inputs: as in a call, without targets, memory and document starts.
            training: bool. Whether to apply dropout.

        Returns:
            Float (B, T, D), and int32 (B, T): positions, counted in tokens, -1
            at padding.

        Raises:
            ValueError: as for a call, or unsupported inputs.
        """
        parts = self.check_inputs(inputs)
        parts = parts if isinstance(parts, dict) else {"token_ids": parts}
        for name in (*_TARGETS, "memory", "document_starts"):
            if name in parts:
                raise ValueError(
                    "`inputs` of an encoder must not contain targets, a memory "
                    f"or document starts. Received: {name}"
                )
        token_ids, token_mask = self._ids_and_mask(parts)
        views = content_and_query_visibility(
            parts, token_mask, (), self.bidirectional_data
        )
        content, _, _ = self._streams(parts, (), views, training)
        if token_mask is None:
            token_mask = ops.ones_like(token_ids, dtype="bool")
        content = self._dropout_layer(content, training=training)
        return content, positions_from_mask(token_mask)

    def token_logits(self, x: TensorLike) -> Tensor:
        """Computes logits over the vocabulary.

        Args:
            x: float (B, T, D).

        Returns:
            Float (B, T, V).
        """
        return self._logits(x)

    def decode_step(
        self, tokens: TensorLike, state: "DecodingState"
    ) -> "tuple[Tensor, DecodingState]":
        """Reads the next tokens of every hypothesis, and predicts the next one.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, T, V), and the next `DecodingState`.
        """
        self._check_step(tokens, state)
        tokens = ops.maximum(tokens, 0)
        weights = state.weights or DecodingWeights()
        count = tokens.shape[1]
        positions, cache = kv.open_slots(state.hypothesis, count)
        checks.batch("tokens", tokens.shape, positions.shape[0])
        step = kv.DecodingStep(positions, weights=weights.blocks)
        content = self._token_embedding(tokens)
        queries = self._queries(content)
        for layer, block in enumerate(self._blocks):
            content, cache = block.decode_step(content, cache, layer, step)
            queries = block.decode_queries(
                queries, positions + 1, positions, cache, layer
            )
        logits = self._logits(self._normalized(queries), weights.output_matrix)
        state = state._replace(hypothesis=kv.close_slots(cache, count))
        return logits, state

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        if not isinstance(inputs, dict):
            return super().check_inputs(inputs)
        for one, other in (("order", "permutation_mask"), _TARGETS):
            if one in inputs and other in inputs:
                raise ValueError(
                    f"`inputs` must contain either `{one}` or `{other}`. "
                    "Received: both"
                )
        if "target_positions" in inputs and not (
            "order" in inputs or "permutation_mask" in inputs
        ):
            raise ValueError(
                "`inputs` must contain `order` or `permutation_mask` with "
                "`target_positions`, or a query would see its own token. "
                f"Received: {' and '.join(inputs)}"
            )
        own = {name: inputs[name] for name in _INPUT_CHECKS if name in inputs}
        others, of_memory = split_inputs(
            {name: x for name, x in inputs.items() if name not in own}
        )
        checked = super().check_inputs(others)
        shape = tuple(checked["token_ids"].shape)
        for name, array in own.items():
            own[name] = _INPUT_CHECKS[name](name, array, shape)
        of_memory = check_segment_inputs(self, of_memory, shape)
        return checked | of_memory | own

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        if isinstance(inputs_shape, dict):
            rows, length = inputs_shape["token_ids"]
            for name in _TARGETS:
                if name in inputs_shape:
                    length = inputs_shape[name][1]
            return rows, length, self.vocabulary_size
        return (*inputs_shape, self.vocabulary_size)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "memory_length": self.memory_length,
            "stateful_batch_size": self.stateful_batch_size,
            "bidirectional_data": self.bidirectional_data,
            "output_bias": self.output_bias,
        }


def _segments(name, array, shape):
    return _check_shape(name, check_ids(name, array, _MAX_SEGMENTS), shape)


def _order(name, array, shape):
    return _check_shape(name, check_ids(name, array, 2**30), shape)


def _permutation(name, array, shape):
    array = check_mask(array, (*shape, shape[1]), name, "at visible tokens")
    return array


def _targets(name, array, shape):
    array = check_ids(name, array, shape[1] or _MAX_SEGMENTS, least=-1)
    return _check_shape(name, array, (shape[0], array.shape[1]))


def _mapping(name, array, shape):
    checks.rank(name, array, 3)
    return _check_shape(name, array, (shape[0], array.shape[1], shape[1]))


def _check_shape(name, array, shape):
    if not checks.fits(tuple(array.shape), shape):
        raise ValueError(
            f"`{name}` must have shape {shape} to match the tokens. "
            f"Received: {tuple(array.shape)}"
        )
    return array


_INPUT_CHECKS = {
    "segment_ids": _segments,
    "order": _order,
    "permutation_mask": _permutation,
    "target_positions": _targets,
    "target_mapping": _mapping,
}
