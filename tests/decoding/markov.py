"""A model that decodes from a table of logits, in place of a real one."""

import keras
import numpy as np
from keras import ops

from keras_attn.decoding import DecodingState


class Markov:
    """Predicts the next token from the last one and the kind of source.

    Implements the decoding protocol and nothing else: no Keras layer.

    Args:
        table: float (K, V, V). Logits of the next token, by the first token of
            the source modulo K and by the last token of the target.
        pad_id: int.
        start_id: int.
        end_id: int.
    """

    def __init__(self, table, pad_id=0, start_id=1, end_id=2):
        self.pad_id, self.start_id, self.end_id = pad_id, start_id, end_id
        self.variables = [keras.Variable(table, dtype="float32")]
        self.steps = 0
        self.sources = []

    def start_decoding(self, inputs, max_new_tokens):
        """Remembers the kind of each source; there is no cache."""
        self.sources.append(tuple(inputs.shape))
        kinds = ops.mod(inputs[:, 0], self.variables[0].shape[0])
        rows = ops.shape(inputs)[0]
        tokens = ops.full((rows, 1), self.start_id, dtype="int32")
        return DecodingState(kinds, (), tokens)

    def decode_step(self, tokens, state):
        """Looks the logits up, and counts the calls in Python."""
        self.steps += 1
        kinds, size, _ = self.variables[0].shape
        rows = ops.reshape(self.variables[0], (kinds * size, size))
        # The hypotheses of one source are adjacent rows.
        beams = tokens.shape[0] // state.memory.shape[0]
        memory = ops.repeat(state.memory, beams, axis=0)
        index = memory[:, None] * size + tokens
        return ops.take(rows, index, axis=0), state

    def log_probs(self, source, prefix):
        """The same in float64 NumPy, for one row and its tokens so far."""
        table = ops.convert_to_numpy(self.variables[0]).astype("float64")
        last = prefix[-1] if prefix else self.start_id
        logits = table[source[0] % len(table), last]
        return logits - np.log(np.exp(logits).sum())
