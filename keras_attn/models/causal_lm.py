"""The decoding protocol of causal language models."""

import numpy as np
from keras import ops

from keras_attn import cache as kv
from keras_attn.decoding import DecodingState
from keras_attn.models.decoding_weights import DecodingWeights
from keras_attn.models.gpt_parts import GPTParts
from keras_attn.models.prompts import prompt_rows


class CausalLM(GPTParts):
    """Implements the decoding protocol for prompts and cached steps.

    Abstract: `GPT`, `TransformerXL` and `XLNet` define the forward pass.
    """

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
            ValueError: invalid ids, or a row without tokens.
        """
        rows = prompt_rows(inputs, self.pad_id, self.vocabulary_size)
        lengths = [len(row) for row in rows]
        return {"token_ids": rows, "lengths": np.array(lengths, "int32")}

    def start_decoding(self, inputs, max_new_tokens):
        """Reads the prompts into a cache.

        Args:
            inputs: int32 (B, S) prompts, or a dict with them as `"token_ids"`
                and either the other inputs of a call or int32 (B,) `"lengths"`.
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`, with room for `max_new_tokens` tokens after each
            prompt.
        """
        token_ids, token_mask = self._prompts(inputs)
        rows, length = ops.shape(token_ids)
        indices = ops.arange(length, dtype="int32")
        last = ops.max(ops.where(token_mask, indices, 0), axis=1, keepdims=True)
        tokens = ops.take_along_axis(token_ids, last, axis=1)
        heads = self.num_heads
        cache = kv.empty(
            rows,
            max_new_tokens + length - 1,
            len(self._blocks),
            heads,
            self.hidden_dim // heads,
            self.hidden_dim // heads,
            self.compute_dtype,
        )
        if length > 1:
            # The first step reads the last token.
            before = ops.logical_and(token_mask, indices < last)[:, :-1]
            _, cache = self._advance(
                token_ids[:, :-1], cache, self._unprepared(), before
            )
        return DecodingState((), cache, tokens)

    def prepare_weights(self):
        """Returns weights in the layout that decoding steps read fastest."""
        tied = self._output_dense is None
        return DecodingWeights.of(
            self._blocks, self._token_embedding if tied else None
        )

    def decode_step(self, tokens, state):
        """Reads the next tokens of every hypothesis.

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

    def _advance(self, tokens, cache, weights, token_mask=None):
        count = tokens.shape[1]
        positions, cache = kv.open_slots(cache, count, token_mask)
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
        """Returns token ids (B, S) and their token mask, bool (B, S)."""
        if isinstance(inputs, dict) and "lengths" in inputs:
            token_ids = inputs["token_ids"]
            indices = ops.arange(ops.shape(token_ids)[1], dtype="int32")
            # Rows are padded with -1 if `pad_id` and `end_id` are both None.
            token_ids = ops.maximum(token_ids, 0)
            return token_ids, indices < inputs["lengths"][:, None]
        token_ids, token_mask = self._parts(self.check_inputs(inputs))
        if token_mask is None:
            token_mask = ops.ones_like(token_ids, dtype="bool")
        return token_ids, token_mask

    def _unprepared(self):
        return DecodingWeights.unprepared(len(self._blocks))

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
