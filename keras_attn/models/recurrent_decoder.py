"""The target side of a recurrent model: cells, attention and output."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.backend import scan
from keras_attn.layers import Dropout, TokenEmbedding

CELLS = {"lstm": keras.layers.LSTMCell, "gru": keras.layers.GRUCell}


class Hypothesis(NamedTuple):
    """Holds what a recurrent decoder remembers of its tokens so far.

    Args:
        states: tuple, for each layer a tuple of float (R, D): h, and c of an
            LSTM.
        fed: float (R, D), what attention made of the step before, where it is
            fed to the next; else ().
        step: int32 (), how many tokens there were.
    """

    states: Any
    fed: Any
    step: Any


class Chance(NamedTuple):
    """Holds the random numbers of scheduled sampling.

    Args:
        coins: bool (R, T), where the model reads its own token.
        places: float32 (R, T) in [0, 1), which one: the token at this place of
            its cumulated probabilities.
    """

    coins: Any
    places: Any


class RecurrentDecoder(keras.layers.Layer):
    """Reads target tokens and a memory, and scores the next token.

    `RecurrentSeq2Seq` says what is computed, and documents the arguments.
    """

    def __init__(
        self,
        vocabulary_size,
        cell,
        num_layers,
        hidden_dim,
        attention,
        input_feeding,
        dropout,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.input_feeding = input_feeding
        dtype = self.dtype_policy
        self._embedding = TokenEmbedding(
            vocabulary_size, hidden_dim, pad_id=None, dtype=dtype, name="token"
        )
        self._cells = [
            CELLS[cell](hidden_dim, dtype=dtype, name=f"cell_{i}")
            for i in range(num_layers)
        ]
        self._attention = attention
        self._mixing_dense = None
        if attention is not None:
            self._mixing_dense = keras.layers.Dense(
                hidden_dim,
                activation="tanh",
                use_bias=False,
                dtype=dtype,
                name="mixing",
            )
        self._output_dense = keras.layers.Dense(
            vocabulary_size, dtype=dtype, name="output"
        )
        self._dropout_layer = Dropout(dropout, dtype=dtype)

    def build(self):
        """Creates all weights."""
        width = self.hidden_dim
        self._embedding.build()
        for layer, cell in enumerate(self._cells):
            fed = width if self.input_feeding and not layer else 0
            cell.build((None, width + fed))
        if self._attention is not None:
            if not self._attention.built:
                self._attention.build((None, None, width), (None, None, width))
            self._mixing_dense.build((None, None, 2 * width))
        self._output_dense.build((None, None, width))
        self.built = True

    def start(self, states):
        """Returns the `Hypothesis` before the first token.

        Args:
            states: tuple, for each layer a tuple of float (R, D).
        """
        fed = ops.zeros_like(states[0][0]) if self.input_feeding else ()
        return Hypothesis(states, fed, ops.zeros((), "int32"))

    def read(self, ids, hypothesis, memory, training=False, chance=None):
        """Reads tokens one after the other.

        Args:
            ids: int32 (R, T).
            hypothesis: `Hypothesis` of R rows.
            memory: float (B, S, D) and positions, int32 (B, S): of B sources,
                the R / B rows of each side by side; () without attention.
            training: bool. Whether dropout acts.
            chance: `Chance`, or None: the tokens are those of `ids`.

        Returns:
            Logits, float (R, T, V); weights (R, T, S), or (); `Hypothesis`.
        """
        count = ops.shape(ids)[1]
        steps = hypothesis.step + ops.arange(count, dtype="int32")
        # Drawn here: a loop cannot draw.
        kept = [self._kept(ids, training) for _ in range(2)]
        state = hypothesis.states, hypothesis.fed
        if self.input_feeding or chance is not None:
            state, logits, weights = self._one_by_one(
                ids, state, steps, kept, memory, training, chance
            )
        else:
            x = self._kept_part(self._embedding(ids), kept[0])
            states, x = self._cells_over_time(x, state[0])
            x, weights = self._attend(x, steps, memory, training)
            logits = self._output_dense(self._kept_part(x, kept[1]))
            state = states, ()
        return logits, weights, Hypothesis(*state, hypothesis.step + count)

    def _one_by_one(self, ids, state, steps, kept, memory, training, chance):
        """Where a step needs what the step before it ended with."""
        inputs = {"ids": ids, "chance": () if chance is None else chance}
        inputs["kept"] = kept
        inputs = keras.tree.map_structure(_time_first, inputs)
        inputs["step"] = steps
        # What the model would have said; before the first token nothing.
        said = ops.zeros_like(ids[:, 0])

        def step(carried, now):
            states, fed, said = carried
            token = now["ids"]
            if chance is not None:
                own = ops.logical_and(now["chance"].coins, now["step"] > 0)
                token = ops.where(own, said, token)
            x = self._kept_part(self._embedding(token), now["kept"][0])
            if self.input_feeding:
                x = ops.concatenate([x, fed], axis=-1)
            states, x = self._cells_at_once(x, states)
            x, weights = self._attend(
                x[:, None], now["step"][None], memory, training
            )
            fed = x[:, 0] if self.input_feeding else ()
            x = self._kept_part(x[:, 0], now["kept"][1])
            # Outside of the loop the product is one large one.
            scored = x if chance is None else self._output_dense(x)
            if chance is not None:
                said = _drawn(scored, now["chance"].places)
            weights = keras.tree.map_structure(lambda x: x[:, 0], weights)
            return (states, fed, said), (scored, weights)

        (*state, _), (scored, weights) = scan(step, (*state, said), inputs)
        scored = _time_first(scored)
        logits = scored if chance is not None else self._output_dense(scored)
        weights = keras.tree.map_structure(_time_first, weights)
        return tuple(state), logits, weights

    def _cells_over_time(self, x, states):
        states, x = scan(
            lambda states, now: self._cells_at_once(now, states),
            states,
            _time_first(x),
        )
        return states, _time_first(x)

    def _cells_at_once(self, x, states):
        following = []
        for cell, state in zip(self._cells, states, strict=True):
            x, state = cell(x, list(state))
            following.append(tuple(state))
        return tuple(following), x

    def _attend(self, x, steps, memory, training):
        """Attends, and mixes what was found with what asked for it."""
        if self._attention is None:
            return x, ()
        encoded, positions = memory
        rows, count = ops.shape(x)[0], ops.shape(x)[1]
        sources = ops.shape(encoded)[0]
        # The hypotheses of a source are queries of one memory.
        query = ops.reshape(x, (sources, -1, self.hidden_dim))
        steps = ops.broadcast_to(steps[None], (rows, count))
        found, weights = self._attention(
            query,
            encoded,
            query_positions=ops.reshape(steps, (sources, -1)),
            key_positions=positions,
            return_attention_scores=True,
            training=training,
        )
        found = ops.reshape(found, (rows, count, self.hidden_dim))
        weights = ops.reshape(weights, (rows, count, ops.shape(encoded)[1]))
        mixed = self._mixing_dense(ops.concatenate([found, x], axis=-1))
        return mixed, weights

    def _kept(self, ids, training):
        """Draws what dropout multiplies (R, T, D) by; () where it does not."""
        if not training or not self._dropout_layer.rate:
            return ()
        shape = (*ops.shape(ids), self.hidden_dim)
        ones = ops.ones(shape, self.compute_dtype)
        return self._dropout_layer(ones, training=True)

    @staticmethod
    def _kept_part(x, kept):
        return x if isinstance(kept, tuple) else x * kept


def _time_first(x):
    """Swaps rows and times."""
    return ops.swapaxes(x, 0, 1)


def _drawn(logits, places):
    """Draws a token of each row: the one that lies at its place in [0, 1)."""
    shares = ops.softmax(ops.cast(logits, "float32"))
    passed = ops.cumsum(shares, axis=-1) <= places[:, None]
    last = logits.shape[-1] - 1
    token = ops.sum(ops.cast(passed, "int32"), axis=-1)
    return ops.minimum(token, last)
