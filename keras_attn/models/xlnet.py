"""The language model that learns from every order of a text."""

import keras
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.blocks import TwoStreamBlock
from keras_attn.layers import XLNetPosition
from keras_attn.models.input_checks import check_ids, check_mask
from keras_attn.models.permutation_order import content_and_query_visibility
from keras_attn.models.segment_recurrent_lm import SegmentRecurrentLM
from keras_attn.ops import positions_from_mask

_TARGETS = "target_positions", "target_mapping"
_SIDES = 2**31 - 1  # segment ids are compared, not looked up


@keras.saving.register_keras_serializable(package="keras_attn")
class XLNet(SegmentRecurrentLM):
    """Guesses tokens in any order, each from all that come before it in that.

        max  E_z  sum_t  log p(x_{z_t} | x_{z_1}, ..., x_{z_{t-1}})

    Yang et al. 2019, eq. 3 and sec. 2.3, https://arxiv.org/abs/1906.08237; z_t
    is the place that comes t-th. Places stay what they are, only who sees whom
    follows the order z (`keras_attn/models/permutation_order.py`). Two streams
    share all weights: the content h, which sees its own token, and the queries
    g, which know their place and not what stands there:

        g_t = Attention(Q = g_t, KV = h of what comes before t in z)
        h_t = Attention(Q = h_t, KV = h of what comes before t in z, and of t)
        logits = g^L E^T + c

    With a memory of earlier segments, as `TransformerXL`. As an encoder for
    `SequenceClassifier`, `TokenClassifier`, `SpanExtractor` it is the content
    stream, in which all see all; what only guesses use should be frozen then,
    `keras_attn.training.freeze(model, "query_vector$|logits_bias$")`, or Keras
    warns of weights without a gradient.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int, even. D.
        intermediate_dim: int. Width inside the feed-forward networks; default
            4 D.
        memory_length: int >= 0. M, in tokens. Default 0.
        stateful_batch_size: int. B, rows of the batches from which a memory is
            carried on; default None: the model carries none.
        bidirectional_data: bool. Rows of the second half of a batch are read
            from right to left: their distances have the other sign. Default
            False.
        dropout: float in [0, 1). On embeddings, on sublayers' outputs and on
            the vectors that logits are made of.
        attention_dropout: float in [0, 1). On attention weights.
        activation_dropout: float in [0, 1). Inside feed-forward networks.
        activation: name or callable. Default `"gelu"`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm behind them.
            Default False.
        epsilon: float. Added to the variance in layer norms.
        tie_word_embeddings: bool. Whether the output uses the embedding's
            matrix. Default True.
        output_bias: bool. Whether the logits have a bias c. Default True.
        pad_id: int. The id that is no token; None: every id is one.
        start_id: int. Never generated; None: there is none.
        end_id: int. What a sequence ends with; None: none ends.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"` and
            any of

            * `"segment_ids"`, int32 (B, T), of which text a token is part; a
              memory is of text 0. Default: texts are not told apart;
            * `"padding_mask"`, bool (B, T), True where there is a token;
              default: everywhere but at `pad_id`;
            * `"order"`, int32 (B, T), at least 0: when a token comes, which is
              the inverse of z, `np.argsort(z)`. It sees those of the same and
              of lower numbers. Default: all at once;
            * `"permutation_mask"`, bool (B, T, T), in place of an order: True
              where token t may see token s. The content sees itself anyway;
            * `"target_positions"`, int32 (B, P), the places in [0, T) that are
              guessed, -1 for none: these are the queries, which see tokens of
              lower numbers only, or what the mask lets them see. Needs an
              order or a mask;
            * `"target_mapping"`, (B, P, T), in place of them: 1 at the place,
              0 elsewhere. Without an order or a mask a guess sees all tokens,
              its own among them, as in transformers;
            * `"document_starts"` and `"memory"`, as for `TransformerXL`.
        training: bool. Whether dropout acts.

    Returns:
        Float (B, P, V), logits of the tokens at the targets; without any,
        (B, T, V), of the content.

    Raises:
        ValueError: arguments out of range; ids of another rank, not integers,
            or out of range; what does not fit the tokens; an order and a mask,
            or positions and a mapping, at once.

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

    _block_class = TwoStreamBlock
    _position_class = XLNetPosition

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=None,
        memory_length=0,
        stateful_batch_size=None,
        bidirectional_data=False,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.0,
        activation="gelu",
        gated=False,
        normalize_first=False,
        epsilon=1e-12,
        tie_word_embeddings=True,
        output_bias=True,
        pad_id=0,
        start_id=1,
        end_id=2,
        **kwargs,
    ):
        self.bidirectional_data = bidirectional_data
        self.output_bias = output_bias
        super().__init__(
            vocabulary_size,
            num_layers,
            num_heads,
            hidden_dim,
            intermediate_dim,
            dropout,
            attention_dropout,
            activation_dropout,
            activation,
            gated,
            normalize_first,
            epsilon,
            tie_word_embeddings=tie_word_embeddings,
            pad_id=pad_id,
            start_id=start_id,
            end_id=end_id,
            memory_length=memory_length,
            stateful_batch_size=stateful_batch_size,
            **kwargs,
        )
        self._query_vector = self.add_weight(
            (hidden_dim,),
            initializer=self._first_weights(),
            name="query_vector",
        )

    def encode(self, inputs, training=None):
        """Returns the content stream of a text.

        Args:
            inputs: as in a call, without targets, memory and starts.
            training: bool. Whether dropout acts.

        Returns:
            Float (B, T, D), and int32 (B, T): positions in tokens, -1 where
            there is none.

        Raises:
            ValueError: what a call raises, or what has no part in it.
        """
        parts = self.check_inputs(inputs)
        parts = parts if isinstance(parts, dict) else {"token_ids": parts}
        for name in (*_TARGETS, "memory", "document_starts"):
            if name in parts:
                raise ValueError(
                    "`inputs` of an encoder must be a text by itself. "
                    f"Received: {name}"
                )
        token_ids, token_mask = self._parts(parts)
        views = content_and_query_visibility(
            parts, token_mask, (), self.bidirectional_data
        )
        content, _, _ = self._streams(parts, (), views, training)
        if token_mask is None:
            token_mask = ops.ones_like(token_ids, dtype="bool")
        content = self._dropout_layer(content, training=training)
        return content, positions_from_mask(token_mask)

    def token_logits(self, x):
        """Scores every token of the vocabulary with the matrix of embeddings.

        Args:
            x: float (B, T, D).

        Returns:
            Float (B, T, V).
        """
        return self._logits(x)

    def decode_step(self, tokens, state):
        """Takes the next tokens of every hypothesis, and asks what is behind.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, T, V), and the next `DecodingState`.
        """
        tokens = ops.maximum(tokens, 0)
        weights = state.weights or self._unprepared()
        cache = state.hypothesis
        count = tokens.shape[1]
        positions, cache = kv.open_slots(cache, count)
        content = self._token_embedding(tokens)
        queries = self._queries(content)
        for layer, block in enumerate(self._blocks):
            content, cache = block.decode_step(
                content, positions, cache, (), layer, weights.blocks[layer]
            )
            queries = block.decode_queries(
                queries, positions + 1, positions, cache, layer
            )
        logits = self._logits(self._normalized(queries), weights.output_matrix)
        state = state._replace(hypothesis=kv.close_slots(cache, count))
        return logits, state

    def check_inputs(self, inputs):
        """Returns the inputs, or raises ValueError."""
        if not isinstance(inputs, dict):
            return super().check_inputs(inputs)
        for one, other in (("order", "permutation_mask"), _TARGETS):
            if one in inputs and other in inputs:
                raise ValueError(
                    f"`inputs` must hold `{one}` or `{other}`. Received: both"
                )
        if "target_positions" in inputs and not (
            "order" in inputs or "permutation_mask" in inputs
        ):
            raise ValueError(
                "`inputs` must hold `order` or `permutation_mask` beside "
                "`target_positions`, or a guess would see its own token. "
                f"Received: {' and '.join(inputs)}"
            )
        own = {name: inputs[name] for name in _OWN if name in inputs}
        checked = super().check_inputs(
            {name: x for name, x in inputs.items() if name not in own}
        )
        shape = tuple(checked["token_ids"].shape)
        for name, array in own.items():
            own[name] = _OWN[name](name, array, shape)
        return checked | own

    def compute_output_shape(self, inputs_shape):
        """Returns the shape of the logits."""
        if isinstance(inputs_shape, dict):
            rows, length = inputs_shape["token_ids"]
            for name in _TARGETS:
                if name in inputs_shape:
                    length = inputs_shape[name][1]
            return rows, length, self.vocabulary_size
        return (*inputs_shape, self.vocabulary_size)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "bidirectional_data": self.bidirectional_data,
            "output_bias": self.output_bias,
        }

    def _read(self, parts, memory, training):
        token_ids, token_mask = self._parts(parts)
        documents = self._documents(parts, memory)
        views = content_and_query_visibility(
            parts, token_mask, memory, self.bidirectional_data, documents
        )
        content, queries, states = self._streams(parts, memory, views, training)
        x = content if queries is None else queries
        logits = self._logits(self._dropout_layer(x, training=training))
        return logits, self._remembered(
            memory, states, token_ids, token_mask, documents
        )

    def _streams(self, parts, memory, views, training):
        """Returns content, queries or None, and the inputs of each block."""
        content = self._token_embedding(parts["token_ids"])
        token_mask = views.content.query_positions >= 0
        content = ops.where(token_mask[..., None], content, 0)
        content = self._dropout_layer(content, training=training)
        queries = None
        if views.queries is not None:
            places = views.queries.query_positions
            row = parts["token_ids"][:, :1]
            places = places + ops.zeros_like(row, dtype="int32")
            queries = self._queries(ops.cast(places, content.dtype)[..., None])
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
        """Returns the first queries, for the rows and lengths of a tensor."""
        vector = ops.cast(self._query_vector, like.dtype)
        return vector + ops.zeros_like(like[..., :1])


def _segments(name, array, shape):
    return _fitting(name, check_ids(name, array, _SIDES), shape)


def _order(name, array, shape):
    return _fitting(name, check_ids(name, array, 2**30), shape)


def _permutation(name, array, shape):
    array = check_mask(array, (*shape, shape[1]), name, "sees each other one")
    return array


def _targets(name, array, shape):
    array = check_ids(name, array, shape[1] or _SIDES, least=-1)
    return _fitting(name, array, (shape[0], array.shape[1]))


def _mapping(name, array, shape):
    checks.rank(name, array, 3)
    return _fitting(name, array, (shape[0], array.shape[1], shape[1]))


def _fitting(name, array, shape):
    if not checks.fits(tuple(array.shape), shape):
        raise ValueError(
            f"`{name}` must have shape {shape}, to fit the tokens. "
            f"Received: {tuple(array.shape)}"
        )
    return array


_OWN = {
    "segment_ids": _segments,
    "order": _order,
    "permutation_mask": _permutation,
    "target_positions": _targets,
    "target_mapping": _mapping,
}
