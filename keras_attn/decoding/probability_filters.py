"""Rules that forbid tokens by their probabilities."""

import math
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import take_along_axis
from keras_attn.decoding.logits_rule import LogitsRule, float32_number
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec


@keras.saving.register_keras_serializable(package="keras_attn")
class Temperature(LogitsRule):
    """Divides the scores by a temperature.

    For rules that must follow it: `Sampling` applies its own `temperature`
    after all rules. Hugging Face filters by probability after the temperature,
    as in `rules=[Temperature(0.7), MinP(0.1)]`.

    Args:
        temperature: float > 0.

    Raises:
        ValueError: `temperature` out of range.

    Examples:
        >>> keras_attn.decoding.Temperature(0.7).get_config()
        {'temperature': 0.7}
    """

    can_be_positive = False

    def __init__(self, temperature: float) -> None:
        self.temperature: float = float32_number(
            "temperature", temperature, positive=True
        )

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Divides the scores."""
        return scores / self.temperature

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"temperature": self.temperature}


@keras.saving.register_keras_serializable(package="keras_attn")
class MinP(LogitsRule):
    """Forbids tokens that are much less likely than the most likely one.

        p(v) < min_p * max_u p(u)

    Nguyen et al. 2024, https://arxiv.org/abs/2407.01082, as in Hugging Face's
    `MinPLogitsWarper`.

    Args:
        min_p: float in [0, 1]. The most likely token is always allowed.

    Raises:
        ValueError: `min_p` out of range.

    Examples:
        >>> strategy = keras_attn.decoding.Sampling(
        ...     seed=0, rules=[keras_attn.decoding.MinP(0.1)])
        >>> len(strategy.rules)
        1
    """

    can_be_positive = False

    def __init__(self, min_p: float) -> None:
        self.min_p: float = float(checks.between("min_p", min_p, 0, 1))

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of tokens below the threshold to -inf."""
        probabilities = ops.softmax(scores, axis=-1)
        most = ops.max(probabilities, axis=-1, keepdims=True)
        return ops.where(probabilities < self.min_p * most, -math.inf, scores)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"min_p": self.min_p}


@keras.saving.register_keras_serializable(package="keras_attn")
class TypicalP(LogitsRule):
    """Forbids tokens whose information is far from the expected one.

    Tokens are ordered by the distance of -log p(v) from the entropy of the
    distribution; the closest ones whose probability is at least `typical_p`
    together are allowed. Meister et al. 2022, https://arxiv.org/abs/2202.00666,
    as in Hugging Face's `TypicalLogitsWarper`.

    Args:
        typical_p: float, 0 < `typical_p` < 1.

    Raises:
        ValueError: `typical_p` out of range.

    Examples:
        >>> keras_attn.decoding.TypicalP(0.9).get_config()
        {'typical_p': 0.9}
    """

    can_be_positive = False

    def __init__(self, typical_p: float) -> None:
        self.typical_p: float = _inside("typical_p", typical_p)

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of the tokens that are not typical to -inf."""
        log_probs = ops.log_softmax(scores, axis=-1)
        probabilities = ops.exp(log_probs)
        information = ops.where(
            probabilities > 0, -log_probs * probabilities, 0.0
        )
        entropy = ops.sum(information, axis=-1, keepdims=True)
        distances = ops.abs(-log_probs - entropy)
        order = ops.argsort(distances, axis=-1)
        sums = ops.cumsum(take_along_axis(probabilities, order), axis=-1)
        last = ops.sum(
            ops.cast(sums < self.typical_p, "int32"), axis=-1, keepdims=True
        )
        last = ops.minimum(last, scores.shape[-1] - 1)
        largest = take_along_axis(take_along_axis(distances, order), last)
        return ops.where(distances > largest, -math.inf, scores)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"typical_p": self.typical_p}


@keras.saving.register_keras_serializable(package="keras_attn")
class EpsilonCutoff(LogitsRule):
    """Forbids tokens with a probability below a constant.

    The most likely token is always allowed. Hewitt et al. 2022,
    https://arxiv.org/abs/2210.15191, as in Hugging Face's
    `EpsilonLogitsWarper`.

    Args:
        epsilon: float, 0 < `epsilon` < 1. The paper recommends 3e-4 to 2e-3.

    Raises:
        ValueError: `epsilon` out of range.

    Examples:
        >>> keras_attn.decoding.EpsilonCutoff(0.001).get_config()
        {'epsilon': 0.001}
    """

    can_be_positive = False

    def __init__(self, epsilon: float) -> None:
        self.epsilon: float = _inside("epsilon", epsilon)

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of unlikely tokens to -inf."""
        unlikely = ops.softmax(scores, axis=-1) < self.epsilon
        below = scores < ops.max(scores, axis=-1, keepdims=True)
        return ops.where(unlikely & below, -math.inf, scores)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"epsilon": self.epsilon}


def _inside(name, value):
    checks.real(name, value)
    if not 0 < value < 1:
        raise ValueError(
            f"`{name}` must be a number between 0 and 1. "
            f"Received: {name}={checks.shown(value)}"
        )
    return float(value)
