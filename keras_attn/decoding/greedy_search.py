"""Greedy search."""

import keras

from keras_attn.backend import argmax_first
from keras_attn.decoding.single_sequence_strategy import SingleSequenceStrategy
from keras_attn.typing import Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class GreedySearch(SingleSequenceStrategy):
    """Greedy search: chooses the most likely token at each step.

        y_t = argmax_v log p(v | y_<t, x)
        score = sum_t log p(y_t | y_<t, x)

    with v neither pad nor start token. The score is the model's
    log-probability, not renormalized over the allowed tokens. Ties go to the
    lowest id. If no token is allowed, there is no sequence: its score is -inf,
    its length 0.

    Args:
        suppress_tokens: iterable of int. Ids that are never generated.
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included.
        rules: list of `LogitsRule`, applied to the logits in their order.
            Default ().

    Raises:
        ValueError: arguments out of range.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> strategy = keras_attn.decoding.GreedySearch(min_new_tokens=4)
        >>> decoded = model.generate(
        ...     [[5, 6, 2]], max_new_tokens=6, strategy=strategy)
        >>> decoded.tokens.shape, int(decoded.lengths[0, 0]) >= 4
        ((1, 1, 6), True)
    """

    def get_next_token(
        self, log_probs: TensorLike, step: TensorLike, uniforms: TensorLike
    ) -> Tensor:
        """Returns the most likely tokens, int32 (B, 1)."""
        return argmax_first(log_probs)
