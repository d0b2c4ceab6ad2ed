"""The language model that reads from left to right."""

import keras
import numpy as np
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.decoding import DecodingState
from keras_attn.models.gpt_parts import GPTParts
from keras_attn.models.prompts import prompt_rows
from keras_attn.models.step_weights import StepWeights
from keras_attn.ops import positions_from_mask

_SIZES = {
    "small": (12, 12, 768),
    "medium": (24, 16, 1024),
    "large": (36, 20, 1280),
    "xl": (48, 25, 1600),
}


@keras.saving.register_keras_serializable(package="keras_attn")
class GPT(GPTParts):
    """Says of every token which one comes next.

        h = Blocks(E[x] + P)
        logits = LayerNorm(h) E^T

    each block a causal self-attention and a feed-forward network. Pre-norm as
    written: GPT-2 (Radford et al. 2019, "Language Models are Unsupervised
    Multitask Learners"). With `normalize_first=False` post-norm and without
    the last norm: GPT (Radford et al. 2018, "Improving Language Understanding
    by Generative Pre-Training"). `GPT.gpt` and `GPT.gpt2` make the published
    sizes.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int. D.
        intermediate_dim: int. Width inside the feed-forward networks; default
            4 D.
        dropout: float in [0, 1). On embeddings and on sublayers' outputs.
        attention_dropout: float in [0, 1). On attention weights.
        activation_dropout: float in [0, 1). Inside feed-forward networks.
        activation: name or callable. Default `gelu_tanh`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm behind them.
            Default True.
        epsilon: float. Added to the variance in layer norms.
        positions: what is added to embeddings: `"learned"`, `"sinusoidal"`, or
            None, nothing.
        position: `AttentionPosition`, such as `RotaryPosition`, that the
            self-attentions of all blocks share; default None.
        max_length: int. The longest sequence, in tokens, a prompt and what is
            generated together; a learned table has as many rows. None, but not
            with learned positions: no limit.
        tie_output: bool. Whether the output uses the embedding's matrix.
            Default True.
        pad_id: int. The id that is no token; None: every id is one, as in
            GPT-2, and `end_id` stands behind sequences that have ended.
        start_id: int. Never generated; None: there is none.
        end_id: int. What a sequence ends with; None: none ends, as where tokens
            are the characters of one long text.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"`
            and, if need be, bool (B, T) as `"padding_mask"`, True where there
            is a token; default: everywhere but at `pad_id`. Padding may stand
            on either side: positions count tokens.
        training: bool. Whether dropout acts.

    Returns:
        Float (B, T, V): logits of the token after each.

    Raises:
        ValueError: arguments out of range; ids of another rank, not integers,
            or out of range; sequences longer than `max_length`; a mask of
            another shape.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16, max_length=32)
        >>> tuple(model(np.array([[7, 8, 9]])).shape)
        (1, 3, 100)
        >>> model.generate([[7, 8, 9], [5]], max_length=4).tokens.shape
        (2, 1, 4)
    """

    @classmethod
    def gpt(cls, vocabulary_size=40478, **kwargs):
        """Returns a model of the size of GPT: 117 M parameters."""
        return cls(
            vocabulary_size,
            **{"normalize_first": False, "max_length": 512, **kwargs},
        )

    @classmethod
    def gpt2(cls, size="small", vocabulary_size=50257, **kwargs):
        """Returns a model of the size of a GPT-2.

        Args:
            size: `"small"`, 124 M parameters, `"medium"`, 355 M, `"large"`,
                774 M, or `"xl"`, 1,558 M.
            vocabulary_size: int. V.
            **kwargs: other arguments.
        """
        checks.choice("size", size, tuple(_SIZES))
        layers, heads, width = _SIZES[size]
        ends = dict.fromkeys(("start_id", "end_id"), vocabulary_size - 1)
        return cls(
            vocabulary_size,
            layers,
            heads,
            width,
            **{"pad_id": None, **ends, **kwargs},
        )

    def call(self, inputs, training=None):
        """Applies the model; the class docstring lists the arguments."""
        x, _ = self.encode(inputs, training=training)
        return self._logits(x)

    def encode(self, inputs, training=None):
        """Returns the vectors that the logits are made of.

        Args:
            inputs: as in a call.
            training: bool. Whether dropout acts.

        Returns:
            Float (B, T, D), behind the last norm where there is one; and int32
            (B, T), positions in tokens, -1 where there is none, or None: there
            is a token everywhere.
        """
        token_ids, there = self._parts(self.check_inputs(inputs))
        positions = None if there is None else positions_from_mask(there)
        x = self._token_embedding(token_ids)
        if self._position_embedding is not None:
            x = self._position_embedding(x, positions=positions)
        x = self._dropout_layer(x, training=training)
        for block in self._blocks:
            x = block(x, positions=positions, training=training)
        return self._normalized(x), positions

    def read_sources(self, inputs):
        """Reads and checks the prompts of `generate` and `stream`.

        Args:
            inputs: B rows of ids: a list of lists or of 1-D arrays, of any
                lengths; int (B, S), padded on either side; or a dict of such an
                array, `"token_ids"`, and its `"padding_mask"`.

        Returns:
            Dict: `"token_ids"`, object array (B,) of int32 arrays, and
            `"lengths"`, int32 (B,).

        Raises:
            ValueError: bad ids, or a row without a token.
        """
        rows = prompt_rows(inputs, self.pad_id, self.vocabulary_size)
        lengths = [len(row) for row in rows]
        return {"token_ids": rows, "lengths": np.array(lengths, "int32")}

    def start_decoding(self, inputs, max_length):
        """Reads the prompts.

        Args:
            inputs: int32 (B, S) prompts, or a dict with them as `"token_ids"`
                and what else a call takes, or int32 (B,) `"lengths"`.
            max_length: int. The most tokens that will be generated.

        Returns:
            `DecodingState`, with room for `max_length` tokens behind each
            prompt.
        """
        token_ids, there = self._prompts(inputs)
        rows, length = ops.shape(token_ids)
        places = ops.arange(length, dtype="int32")
        last = ops.max(ops.where(there, places, 0), axis=1, keepdims=True)
        tokens = ops.take_along_axis(token_ids, last, axis=1)
        heads = self.num_heads
        cache = kv.empty(
            rows,
            max_length + length - 1,
            len(self._blocks),
            heads,
            self.hidden_dim // heads,
            self.hidden_dim // heads,
            self.compute_dtype,
        )
        if length > 1:
            # The last token is taken by the first step.
            before = ops.logical_and(there, places < last)[:, :-1]
            _, cache = self._advance(
                token_ids[:, :-1], cache, self._unprepared(), before
            )
        return DecodingState((), cache, tokens)

    def prepare_weights(self):
        """Returns weights in the form that steps read fastest."""
        tied = self._output_dense is None
        return StepWeights.of(
            self._blocks, self._token_embedding if tied else None
        )

    def decode_step(self, tokens, state):
        """Takes the next tokens of every hypothesis.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, T, V), and the next `DecodingState`.
        """
        tokens = ops.maximum(tokens, 0)
        weights = state.weights or self._unprepared()
        x, cache = self._advance(tokens, state.hypothesis, weights)
        logits = self._logits(self._normalized(x), weights.output_matrix)
        return logits, state._replace(hypothesis=cache)

    def _advance(self, tokens, cache, weights, there=None):
        count = tokens.shape[1]
        positions, cache = kv.open_slots(cache, count, there)
        x = self._token_embedding(tokens)
        if self._position_embedding is not None:
            x = self._position_embedding.decode_step(
                x, positions, kv.slots(cache)
            )
        for layer, block in enumerate(self._blocks):
            x, cache = block.decode_step(
                x, positions, cache, (), layer, weights.blocks[layer]
            )
        return x, kv.close_slots(cache, count)

    def _prompts(self, inputs):
        """Returns token ids (B, S), and bool (B, S): where there is one."""
        if isinstance(inputs, dict) and "lengths" in inputs:
            token_ids = inputs["token_ids"]
            places = ops.arange(ops.shape(token_ids)[1], dtype="int32")
            # Where no id is padding, and none ends, -1 fills rows up.
            token_ids = ops.maximum(token_ids, 0)
            return token_ids, places < inputs["lengths"][:, None]
        token_ids, there = self._parts(self.check_inputs(inputs))
        if there is None:
            there = ops.ones_like(token_ids, dtype="bool")
        return token_ids, there

    def _unprepared(self):
        return StepWeights.unprepared(len(self._blocks))

    def _check_room(self, sources, max_length):
        longest = int(sources["lengths"].max())
        # The last token that is generated is not read.
        if self.max_length is not None and (
            longest + max_length - 1 > self.max_length
        ):
            raise ValueError(
                "`inputs` and `max_length` together must not exceed the "
                f"position table of max_length={self.max_length} rows. "
                f"Received: {longest} tokens and max_length={max_length}"
            )
