"""Greedy search: the likeliest token, step after step."""

import keras
from keras import ops

from keras_attn.decoding.loop import Choice, run
from keras_attn.decoding.sequences import begin, decoded, grow
from keras_attn.decoding.strategy import Strategy


@keras.saving.register_keras_serializable(package="keras_attn")
class GreedySearch(Strategy):
    """Takes the likeliest token at every step until the end token.

        y_t = argmax_v log p(v | y_<t, x)
        score = sum_t log p(y_t | y_<t, x)

    with v neither pad nor start token. The score is the one under the model,
    not renormalised over the tokens that are allowed. Of equally likely tokens
    the one of the lowest id is taken. Where none is allowed, there is no
    sequence: its score is -inf, its length 0.

    Args:
        banned_tokens: iterable of int. Ids that are never generated.
        min_length: int >= 0. The fewest tokens of a sequence, its end token
            included.

    Raises:
        ValueError: arguments out of range.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> strategy = keras_attn.decoding.GreedySearch(min_length=4)
        >>> decoded = model.generate(
        ...     [[5, 6, 2]], max_length=6, strategy=strategy)
        >>> decoded.tokens.shape, int(decoded.lengths[0, 0]) >= 4
        ((1, 1, 6), True)
    """

    def search(self, model, inputs, max_length, prefix=None, draws=None):
        """Runs the whole search as a function of tensors.

        Args:
            model: what offers the decoding protocol.
            inputs: nest of tensors for its `start_decoding`.
            max_length: int. L, the most tokens generated, end included.
            prefix: int32 (B, L), as for every strategy, or None.
            draws: None.

        Returns:
            `Decoded` of tensors, with t = 1.
        """
        pad_id, end_id = model.pad_id, model.end_id

        def choose(sequences, step, log_probs):
            chosen = ops.cast(ops.argmax(log_probs, axis=-1), "int32")
            return Choice(
                *grow(sequences, step, log_probs, chosen, pad_id, end_id)
            )

        sequences = run(
            model,
            inputs,
            max_length,
            self.constraints(model, prefix),
            width=1,
            book=lambda sources: begin(sources, 1, max_length, pad_id),
            alive=lambda sequences: sequences.growing,
            choose=choose,
        )
        return decoded(*sequences[:3], pad_id)
