"""Greedy search: the likeliest token, step after step."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_attn.decoding.protocol import Decoded


class _Loop(NamedTuple):
    step: Any  # int32 (), tokens generated so far
    state: Any  # DecodingState, its `tokens` those of the next step
    tokens: Any  # int32 (R, L)
    scores: Any  # float32 (R,), sum of log-probabilities
    lengths: Any  # int32 (R,)
    finished: Any  # bool (R,)


@keras.saving.register_keras_serializable(package="keras_attn")
class GreedySearch:
    """Takes the likeliest token at every step until the end token.

        y_t = argmax_v log p(v | y_<t, x)
        score = sum_t log p(y_t | y_<t, x)

    with v neither pad nor start token. The score is the one under the model,
    not renormalised over the tokens that are allowed.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> decoded = model.generate(
        ...     [[5, 6, 2]], max_length=4,
        ...     strategy=keras_attn.decoding.GreedySearch())
        >>> decoded.tokens.shape
        (1, 1, 4)
    """

    def search(self, model, inputs, max_length):
        """Runs the whole search as a function of tensors.

        Args:
            model: what offers the decoding protocol.
            inputs: nest of tensors for its `start_decoding`.
            max_length: int. L, the most tokens generated, end included.

        Returns:
            `Decoded` of tensors, with t = 1.
        """
        state = model.start_decoding(inputs, max_length)
        rows = ops.shape(state.tokens)[0]
        never = [model.pad_id]
        if model.start_id != model.end_id:
            never.append(model.start_id)

        def unfinished(*loop):
            loop = _Loop(*loop)
            return ops.logical_and(
                loop.step < max_length,
                ops.logical_not(ops.all(loop.finished)),
            )

        def advance(*loop):
            loop = _Loop(*loop)
            logits, state = model.decode_step(loop.state.tokens, loop.state)
            log_probs = ops.log_softmax(ops.cast(logits[:, -1], "float32"))
            allowed = _without(log_probs, never)
            chosen = ops.cast(ops.argmax(allowed, axis=-1), "int32")
            gained = ops.take_along_axis(log_probs, chosen[:, None], axis=-1)
            gained = ops.where(loop.finished, 0.0, gained[:, 0])
            chosen = ops.where(loop.finished, model.pad_id, chosen)
            slot = ops.arange(max_length, dtype="int32")[None] == loop.step
            return _Loop(
                loop.step + 1,
                state._replace(tokens=chosen[:, None]),
                ops.where(slot, chosen[:, None], loop.tokens),
                loop.scores + gained,
                loop.lengths + ops.cast(~loop.finished, "int32"),
                loop.finished | (chosen == model.end_id),
            )

        loop = _Loop(
            ops.zeros((), "int32"),
            state,
            ops.full((rows, max_length), model.pad_id, dtype="int32"),
            ops.zeros((rows,), "float32"),
            ops.zeros((rows,), "int32"),
            ops.zeros((rows,), "bool"),
        )
        loop = _Loop(*ops.while_loop(unfinished, advance, loop))
        return Decoded(
            loop.tokens[:, None], loop.scores[:, None], loop.lengths[:, None]
        )

    def get_config(self):
        """Returns the constructor's arguments: none."""
        return {}

    @classmethod
    def from_config(cls, config):
        """Makes the strategy from its config."""
        return cls(**config)


def _without(log_probs, never):
    ids = ops.arange(log_probs.shape[-1], dtype="int32")
    hidden = ids == never[0]
    for token in never[1:]:
        hidden = hidden | (ids == token)
    return ops.where(hidden, -float("inf"), log_probs)
