"""Rules against repetition."""

import math
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import count_ids
from keras_attn.decoding.logits_rule import LogitsRule, float32_number
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec


@keras.saving.register_keras_serializable(package="keras_attn")
class RepetitionPenalty(LogitsRule):
    """Makes the tokens so far, those of the prompt included, less likely.

        score'(v) = score(v) / penalty  if score(v) > 0
                    score(v) * penalty  otherwise,  for v among the tokens

    Keskar et al. 2019, sec. 4.1, https://arxiv.org/abs/1909.05858, with the
    multiplication of negative scores as in Hugging Face's
    `RepetitionPenaltyLogitsProcessor`.

    Args:
        penalty: float > 0. Values above 1 discourage repetition, values below 1
            encourage it.

    Raises:
        ValueError: `penalty` out of range.

    Examples:
        >>> strategy = keras_attn.decoding.GreedySearch(
        ...     rules=[keras_attn.decoding.RepetitionPenalty(1.2)])
        >>> len(strategy.rules)
        1
    """

    can_be_positive = False

    def __init__(self, penalty: float) -> None:
        self.penalty: float = float32_number("penalty", penalty, positive=True)

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Multiplies or divides the scores of the tokens so far."""
        seen = count_ids(tokens, scores.shape[-1]) > 0
        lower = ops.where(
            scores < 0, scores * self.penalty, scores / self.penalty
        )
        return ops.where(seen, lower, scores)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"penalty": self.penalty}


class _GeneratedPenalty(LogitsRule):
    """Subtracts a multiple of some measure of the generated tokens' counts.

    Args:
        penalty: float.
    """

    def __init__(self, penalty: float) -> None:
        self.penalty: float = float32_number("penalty", penalty)

    @property
    def can_be_positive(self) -> bool:
        """Whether the penalty is a reward."""
        return self.penalty < 0

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Subtracts the penalty."""
        slots = tokens.shape[-1]
        indices = ops.arange(slots, dtype="int32")
        generated = ops.where(indices >= slots - step, tokens, -1)
        counts = count_ids(generated, scores.shape[-1])
        return scores - self.penalty * self._measured(counts)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"penalty": self.penalty}


@keras.saving.register_keras_serializable(package="keras_attn")
class PresencePenalty(_GeneratedPenalty):
    """Subtracts a constant from the scores of all generated tokens.

        score'(v) = score(v) - penalty  for v among the generated tokens

    As `presence_penalty` of OpenAI's API and vLLM: the tokens of the prompt do
    not count.

    Args:
        penalty: float. Values below 0 encourage repetition.

    Raises:
        ValueError: `penalty` is not a finite number.

    Examples:
        >>> keras_attn.decoding.PresencePenalty(0.5).get_config()
        {'penalty': 0.5}
    """

    def _measured(self, counts):
        return ops.cast(counts > 0, "float32")


@keras.saving.register_keras_serializable(package="keras_attn")
class FrequencyPenalty(_GeneratedPenalty):
    """Subtracts a constant for each occurrence of a generated token.

        score'(v) = score(v) - penalty * count(v)

    with the number of times that v was generated, as `frequency_penalty` of
    OpenAI's API and vLLM: the tokens of the prompt do not count.

    Args:
        penalty: float. Values below 0 encourage repetition.

    Raises:
        ValueError: `penalty` is not a finite number.

    Examples:
        >>> keras_attn.decoding.FrequencyPenalty(0.5).get_config()
        {'penalty': 0.5}
    """

    def _measured(self, counts):
        return counts


@keras.saving.register_keras_serializable(package="keras_attn")
class NoRepeatNGram(LogitsRule):
    """Forbids tokens that would complete an n-gram for the second time.

    The n-grams of the prompt count too, as in Hugging Face's
    `no_repeat_ngram_size`.

    Args:
        ngram_size: int >= 1. With 1, no token occurs twice.

    Raises:
        ValueError: `ngram_size` out of range.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4,
        ...     max_sequence_length=16)
        >>> strategy = keras_attn.decoding.GreedySearch(
        ...     rules=[keras_attn.decoding.NoRepeatNGram(1)])
        >>> decoded = model.generate([[5, 6, 7]], 4, strategy)
        >>> bool(np.isin(decoded.tokens, [5, 6, 7]).any())
        False
    """

    can_be_positive = False

    def __init__(self, ngram_size: int) -> None:
        self.ngram_size: int = checks.positive_int("ngram_size", ngram_size)

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of tokens that complete an earlier n-gram to -inf."""
        before, slots = self.ngram_size - 1, tokens.shape[-1]
        if slots <= before:
            return scores
        following = tokens[..., before:]
        repeated = ops.ones_like(following, dtype="bool")
        for index in range(before):
            last = tokens[..., slots - before + index, None]
            window = tokens[..., index : slots - before + index]
            # Before the first token there is no n-gram.
            repeated = repeated & ops.equal(window, last) & (window >= 0)
        banned = ops.where(repeated, following, -1)
        banned = count_ids(banned, scores.shape[-1]) > 0
        return ops.where(banned, -math.inf, scores)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"ngram_size": self.ngram_size}
