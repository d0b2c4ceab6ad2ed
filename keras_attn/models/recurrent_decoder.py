"""Decoder of a recurrent model: cells, attention and output."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.backend import scan
from keras_attn.layers import Dropout, TokenEmbedding
from keras_attn.typing import Tensor, TensorLike

CELLS: dict[str, Any] = {
    "lstm": keras.layers.LSTMCell,
    "gru": keras.layers.GRUCell,
}


class Hypothesis(NamedTuple):
    """State of a recurrent decoder after the tokens so far.

    Args:
        states: tuple, for each layer a tuple of float (R, D): h, and c of an
            LSTM.
        fed: float (R, D), with input feeding the attentional output of the
            previous step; else ().
        step: int32 (), the number of tokens so far.
    """

    states: Any
    fed: Any
    step: Any


class SamplingDraws(NamedTuple):
    """Random numbers of scheduled sampling.

    Args:
        use_prediction: bool (R, T), True where the model reads a token that it
            has sampled.
        uniforms: float32 (R, T) in [0, 1), the uniforms for inverse transform
            sampling of that token.
    """

    use_prediction: Any
    uniforms: Any


class RecurrentDecoder(keras.layers.Layer):
    """Computes the logits of the next token from target tokens and a memory.

    `RecurrentSeq2Seq` documents the equations and the arguments.
    """

    def __init__(
        self,
        vocabulary_size: int,
        cell: str,
        num_layers: int,
        hidden_dim: int,
        attention: Any,
        input_feeding: bool,
        dropout: float,
        **kwargs: Any,
    ) -> None:
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

    def build(self) -> None:
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

    def start(self, states: tuple[Any, ...]) -> Hypothesis:
        """Returns the `Hypothesis` before the first token.

        Args:
            states: tuple, for each layer a tuple of float (R, D).
        """
        fed = ops.zeros_like(states[0][0]) if self.input_feeding else ()
        return Hypothesis(states, fed, ops.zeros((), "int32"))

    def read(
        self,
        ids: TensorLike,
        hypothesis: Hypothesis,
        memory: TensorLike,
        training: bool | None = False,
        sampling: SamplingDraws | None = None,
    ) -> "tuple[Tensor, Tensor, Hypothesis]":
        """Reads tokens in sequence.

        Args:
            ids: int32 (R, T).
            hypothesis: `Hypothesis` of R rows.
            memory: float (B, S, D) and positions, int32 (B, S), of B sources
                with R / B adjacent rows each; () without attention.
            training: bool. Whether to apply dropout.
            sampling: `SamplingDraws`, or None: read the tokens of `ids`.

        Returns:
            Logits, float (R, T, V); weights (R, T, S), or (); `Hypothesis`.
        """
        count = ops.shape(ids)[1]
        steps = hypothesis.step + ops.arange(count, dtype="int32")
        # Sampled here, because a loop on JAX cannot draw random numbers from a
        # seed generator (as of Keras 3.15.1).
        dropout_masks = [self._dropout_mask(ids, training) for _ in range(2)]
        state = hypothesis.states, hypothesis.fed
        if self.input_feeding or sampling is not None:
            state, logits, weights = self._read_stepwise(
                ids, state, steps, dropout_masks, memory, training, sampling
            )
        else:
            x = self._apply_dropout_mask(self._embedding(ids), dropout_masks[0])
            states, x = self._cells_over_time(x, state[0])
            x, weights = self._attend(x, steps, memory, training)
            logits = self._output_dense(
                self._apply_dropout_mask(x, dropout_masks[1])
            )
            state = states, ()
        return logits, weights, Hypothesis(*state, hypothesis.step + count)

    def _read_stepwise(
        self, ids, state, steps, dropout_masks, memory, training, sampling
    ):
        """Reads tokens where each step needs the result of the previous one."""
        inputs = {"ids": ids, "sampling": () if sampling is None else sampling}
        inputs["dropout_masks"] = dropout_masks
        inputs = keras.tree.map_structure(_time_first, inputs)
        inputs["step"] = steps
        # The token sampled at the previous step; unused at the first.
        sampled = ops.zeros_like(ids[:, 0])

        def step(carry, now):
            states, fed, sampled = carry
            token = now["ids"]
            if sampling is not None:
                own = ops.logical_and(
                    now["sampling"].use_prediction, now["step"] > 0
                )
                token = ops.where(own, sampled, token)
            x = self._apply_dropout_mask(
                self._embedding(token), now["dropout_masks"][0]
            )
            if self.input_feeding:
                x = ops.concatenate([x, fed], axis=-1)
            states, x = self._cells_step(x, states)
            x, weights = self._attend(
                x[:, None], now["step"][None], memory, training
            )
            fed = x[:, 0] if self.input_feeding else ()
            x = self._apply_dropout_mask(x[:, 0], now["dropout_masks"][1])
            # Without scheduled sampling one matmul after the loop is faster.
            scored = x if sampling is None else self._output_dense(x)
            if sampling is not None:
                sampled = _sample(scored, now["sampling"].uniforms)
            weights = keras.tree.map_structure(lambda x: x[:, 0], weights)
            return (states, fed, sampled), (scored, weights)

        (*state, _), (scored, weights) = scan(step, (*state, sampled), inputs)
        scored = _time_first(scored)
        logits = scored if sampling is not None else self._output_dense(scored)
        weights = keras.tree.map_structure(_time_first, weights)
        return tuple(state), logits, weights

    def _cells_over_time(self, x, states):
        states, x = scan(
            lambda states, now: self._cells_step(now, states),
            states,
            _time_first(x),
        )
        return states, _time_first(x)

    def _cells_step(self, x, states):
        new_states = []
        for cell, state in zip(self._cells, states, strict=True):
            x, state = cell(x, list(state))
            new_states.append(tuple(state))
        return tuple(new_states), x

    def _attend(self, x, steps, memory, training):
        """Attends to the memory and mixes the context with the query."""
        if self._attention is None:
            return x, ()
        encoded, positions = memory
        rows, count = ops.shape(x)[0], ops.shape(x)[1]
        sources = ops.shape(encoded)[0]
        # All hypotheses of a source attend to the same memory.
        query = ops.reshape(x, (sources, -1, self.hidden_dim))
        steps = ops.broadcast_to(steps[None], (rows, count))
        context, weights = self._attention(
            query,
            encoded,
            query_positions=ops.reshape(steps, (sources, -1)),
            key_positions=positions,
            return_attention_scores=True,
            training=training,
        )
        context = ops.reshape(context, (rows, count, self.hidden_dim))
        weights = ops.reshape(weights, (rows, count, ops.shape(encoded)[1]))
        mixed = self._mixing_dense(ops.concatenate([context, x], axis=-1))
        return mixed, weights

    def _dropout_mask(self, ids, training):
        """Samples the dropout multipliers (R, T, D); () without dropout."""
        if not training or not self._dropout_layer.rate:
            return ()
        shape = (*ops.shape(ids), self.hidden_dim)
        ones = ops.ones(shape, self.compute_dtype)
        return self._dropout_layer(ones, training=True)

    @staticmethod
    def _apply_dropout_mask(x, mask):
        return x if isinstance(mask, tuple) else x * mask


def _time_first(x):
    """Swaps the batch axis and the time axis."""
    return ops.swapaxes(x, 0, 1)


def _sample(logits, uniforms):
    """Samples a token per row by inverse transform of uniforms."""
    probabilities = ops.softmax(ops.cast(logits, "float32"))
    passed = ops.cumsum(probabilities, axis=-1) <= uniforms[:, None]
    last = logits.shape[-1] - 1
    token = ops.sum(ops.cast(passed, "int32"), axis=-1)
    return ops.minimum(token, last)
