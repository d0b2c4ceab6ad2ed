"""Base class of strategies with independent sequences."""

from typing import TYPE_CHECKING, Any

from keras import ops

from keras_attn.decoding.loop import Choice
from keras_attn.decoding.sequences import (
    begin,
    decoded,
    grow,
    lengthened,
)
from keras_attn.decoding.strategy import (
    ActiveHypotheses,
    Strategy,
    undefined,
)
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec
    from keras_attn.decoding.protocol import Decoded


class SingleSequenceStrategy(Strategy):
    """Base class of strategies that extend each sequence on its own.

    A subclass defines `get_next_token`. The search state is a `Sequences`.

    Args:
        suppress_tokens: iterable of int. Token ids that are never generated, in
            addition to pad and start. Default ().
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included. Default 0.
        rules: list of `LogitsRule`, which change the scores of the next token
            in each step, in their order. Default ().

    Examples:
        >>> class SecondBest(keras_attn.decoding.SingleSequenceStrategy):
        ...     def get_next_token(self, log_probs, step, uniforms):
        ...         _, tokens = keras.ops.top_k(log_probs, 2)
        ...         return keras.ops.cast(tokens[..., 1], "int32")
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> model.generate(
        ...     [[5, 6, 2]], max_new_tokens=4,
        ...     strategy=SecondBest()).tokens.shape
        (1, 1, 4)
    """

    def get_next_token(
        self, log_probs: TensorLike, step: TensorLike, uniforms: TensorLike
    ) -> Tensor:
        """Returns the next token of each sequence.

        Args:
            log_probs: float32 (B, k, V), -inf where a token is not allowed. If
                the strategy has rules, of the distribution that they return.
            step: int32 (), the number of tokens generated so far.
            uniforms: what `draw_uniforms` returned, as a tensor, or None.

        Returns:
            Int32 (B, k).
        """
        raise undefined(self, "get_next_token")

    def init_state(
        self, batch_size: int, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns empty `Sequences`."""
        return begin(batch_size, self.num_hypotheses, length, spec.pad_id)

    def grow_state(
        self, search_state: Nest, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns the sequences with `length` slots for tokens."""
        tokens = lengthened(search_state.tokens, length, spec.pad_id)
        return search_state._replace(tokens=tokens)

    def is_active(self, search_state: Nest) -> Tensor:
        """Returns which sequences have not ended, bool (B, k)."""
        return search_state.growing

    def choose(
        self,
        search_state: Nest,
        step: TensorLike,
        log_probs: TensorLike,
        uniforms: TensorLike,
        spec: "SearchSpec",
        scores: TensorLike | None = None,
        ends: TensorLike | None = None,
    ) -> Choice:
        """Appends a token to every sequence that has not ended.

        The score of a sequence is the sum of `log_probs`, the model's, also if
        rules change which token is chosen.
        """
        if scores is None:
            picked = self.get_next_token(log_probs, step, uniforms)
        else:
            picked = self.get_next_token(_normalized(scores), step, uniforms)
            log_probs = ops.where(
                scores > -float("inf"), log_probs, -float("inf")
            )
        return Choice(
            *grow(
                search_state,
                step,
                log_probs,
                picked,
                spec.pad_id,
                spec.end_ids,
                ends,
            )
        )

    def finalize(self, search_state: Nest, spec: "SearchSpec") -> "Decoded":
        """Returns all sequences as `Decoded` of tensors."""
        return decoded(
            search_state.tokens,
            search_state.scores,
            search_state.lengths,
            spec.pad_id,
        )

    def active_hypotheses(
        self, search_state: Nest, step: TensorLike, spec: "SearchSpec"
    ) -> ActiveHypotheses:
        """Returns the sequences that have not ended."""
        growing = ops.logical_and(
            search_state.growing, step < spec.max_new_tokens
        )
        parents = ops.arange(self.num_hypotheses, dtype="int32")[None]
        return ActiveHypotheses(
            ops.where(growing[..., None], search_state.tokens, spec.pad_id),
            ops.where(growing, search_state.scores, -float("inf")),
            ops.where(growing, search_state.lengths, 0),
            ops.tile(parents, (growing.shape[0], 1)),
        )


def _normalized(scores):
    """Returns log-probabilities; rows of only -inf stay as they are."""
    most = ops.max(scores, axis=-1, keepdims=True)
    # In a row of only -inf, -inf - -inf would be NaN.
    scores = scores - ops.where(most > -float("inf"), most, 0.0)
    total = ops.sum(ops.exp(scores), axis=-1, keepdims=True)
    # At least 1, except in such a row.
    return scores - ops.log(ops.maximum(total, 0.5))
