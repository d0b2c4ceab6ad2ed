"""The base class of rules that change the scores of the next token."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from keras_attn import checks
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec


class LogitsRule:
    """Base class of rules that change the scores of the next token.

    A strategy applies its `rules` in each step, in their order, before it
    chooses tokens. A rule is a pure function of tensors and part of the
    compiled program: it must not read the values of tensors. It gets what the
    logits processors of Hugging Face get: the logits in greedy search and
    sampling, the log-probabilities in beam search, and -inf for the tokens that
    the strategy itself forbids. These stay forbidden, and the tokens of a
    `prefix` stay forced, whatever a rule returns.

    A subclass defines `apply` and, if it has constructor arguments,
    `get_config`. Compiled programs are cached by the class and the attributes
    of a rule. Register the class with
    `keras.saving.register_keras_serializable` to restore strategies that use
    it from their configs.

    Examples:
        A rule that never generates a token twice in a row:

        >>> class NoDouble(keras_attn.decoding.LogitsRule):
        ...     can_be_positive = False
        ...     def apply(self, scores, tokens, step, spec):
        ...         ids = keras.ops.arange(scores.shape[-1], dtype="int32")
        ...         return keras.ops.where(
        ...             ids == tokens[..., -1:], -float("inf"), scores)
        >>> model = keras_attn.models.GPT(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4,
        ...     max_sequence_length=16, end_id=None)
        >>> strategy = keras_attn.decoding.GreedySearch(rules=[NoDouble()])
        >>> tokens = model.generate([[5, 6, 7]], 8, strategy).tokens[0, 0]
        >>> bool((tokens[1:] != tokens[:-1]).all())
        True
    """

    @property
    def can_be_positive(self) -> bool:
        """Whether `apply` can turn a score of at most 0 into one above 0.

        Beam search stops when no active hypothesis can reach the finished ones,
        because log-probabilities only fall. With such a rule it goes on.
        """
        return True

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Returns the new scores of the next token.

        Args:
            scores: float32 (B, k, V), of k sequences per source; -inf where a
                token is not allowed. All are -inf if a sequence has ended.
            tokens: int32 (B, k, P + L), the tokens so far: -1, then the P
                tokens of the prompt, or the first input of the decoder if the
                model has no prompt, then the `step` generated tokens. The last
                token is at index -1.
            step: int32 (), the number of tokens generated so far.
            spec: `SearchSpec`: the length limit and the special tokens.

        Returns:
            Float (B, k, V), below infinity; -inf forbids a token.
        """
        raise _undefined(self)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the rule from its config."""
        return cls(**config)


def check_rules(rules: Any) -> tuple[LogitsRule, ...]:
    """Returns rules as a tuple, or raises ValueError.

    Args:
        rules: list or tuple of `LogitsRule`.

    Raises:
        ValueError: another argument.
        NotImplementedError: a rule without `apply`.
    """
    if not isinstance(rules, (list, tuple)):
        raise ValueError(
            "`rules` must be a list of `keras_attn.decoding.LogitsRule`. "
            f"Received: rules={checks.shown(rules)}"
        )
    for rule in rules:
        if not isinstance(rule, LogitsRule):
            raise ValueError(
                "`rules` must hold objects of `keras_attn.decoding.LogitsRule`."
                f" Received: {checks.shown(rule)}"
            )
        if type(rule).apply is LogitsRule.apply:
            raise _undefined(rule)
    return tuple(rules)


def _undefined(rule):
    return NotImplementedError(
        "A rule must define `apply`. "
        f"Received: {type(rule).__name__} in `rules` without it"
    )


def float32_number(name: str, value: Any, positive: bool = False) -> float:
    """Returns a number that float32 can hold, or raises ValueError.

    Args:
        name: str. Name of the argument.
        value: any object.
        positive: bool. Whether it must be above 0, and not so small that
            compiled programs round it to 0. Default False.
    """
    checks.real(name, value)
    limits = np.finfo("float32")
    most = float(limits.max)
    least = float(limits.tiny) if positive else -most
    return float(checks.between(name, value, least, most))
