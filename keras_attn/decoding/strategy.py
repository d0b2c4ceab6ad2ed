"""The base class of decoding strategies."""

import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import keras

from keras_attn import checks
from keras_attn.decoding.constraints import Constraints
from keras_attn.decoding.logits_rule import LogitsRule, check_rules
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import Choice, SearchSpec
    from keras_attn.decoding.protocol import Decoded


class ActiveHypotheses(NamedTuple):
    """The hypotheses of each source that a search still extends.

    Args:
        tokens: int32 (B, k, L), padded with `pad_id`.
        scores: float32 (B, k), log-probabilities in nats; -inf if there is no
            such hypothesis.
        lengths: int32 (B, k), tokens so far; 0 if there is no hypothesis.
        parents: int32 (B, k), the index of the hypothesis of the previous step
            that each one extends.

    Examples:
        >>> keras_attn.decoding.ActiveHypotheses(None, None, None, None)._fields
        ('tokens', 'scores', 'lengths', 'parents')
    """

    tokens: Any
    scores: Any
    lengths: Any
    parents: Any


class Strategy:
    """Base class of decoding strategies: chooses the next token at each step.

    A strategy keeps `num_hypotheses` hypotheses per source in a search state, a
    nest of tensors. `generate` and `stream` drive it through these methods, all
    of them functions of tensors:

        init_state(batch_size, length, spec) -> search_state
        grow_state(search_state, length, spec) -> search_state
        is_active(search_state) -> bool (B, k)
        choose(search_state, step, log_probs, uniforms, spec, scores, ends)
            -> Choice
        finalize(search_state, spec) -> Decoded
        active_hypotheses(search_state, step, spec) -> ActiveHypotheses

    A strategy whose hypotheses do not compete, such as greedy search or
    sampling, subclasses `SingleSequenceStrategy` (or one of the two) and
    defines only `get_next_token`. A strategy with constructor arguments also
    defines `get_config`. Compiled programs are cached by the class, the config
    and the other attributes; an attribute that changes in every search but is
    not read by the program, such as a seed, belongs in the config and is left
    out of `program_config`.

    A strategy that reads more of the model than its logits overrides
    `start_decoding` and `decode_step`, which by default call those of the
    model.

    Set `reorders = True` if hypotheses can extend other hypotheses of their
    source (`Choice.parents`). They then share the slots of one cache, and
    nothing is copied when they are reordered. Otherwise each hypothesis has its
    own cache.

    Args:
        suppress_tokens: iterable of int. Token ids that are never generated, in
            addition to pad and start. Default ().
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included. Default 0.
        rules: list of `LogitsRule`, which change the scores of the next token
            in each step, in their order. Default ().

    Raises:
        ValueError: an argument out of range.

    Examples:
        A custom strategy: sampling with a temperature that falls at each step.

        >>> class CoolingSampling(keras_attn.decoding.Sampling):
        ...     def get_next_token(self, log_probs, step, uniforms):
        ...         t = keras.ops.cast(step, "float32")
        ...         temperature = 0.1 + 0.9 * 0.8**t
        ...         return super().get_next_token(
        ...             log_probs / temperature, step, uniforms)
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> strategy = CoolingSampling(seed=0, num_return_sequences=2)
        >>> isinstance(strategy, keras_attn.decoding.Strategy)
        True
        >>> model.generate(
        ...     [[5, 6, 2]], max_new_tokens=4, strategy=strategy).tokens.shape
        (1, 2, 4)
    """

    num_hypotheses = 1
    reorders = False
    rules: tuple[LogitsRule, ...] = ()

    def __init__(
        self,
        suppress_tokens: Iterable[int] = (),
        min_new_tokens: int = 0,
        rules: Sequence[LogitsRule] = (),
    ) -> None:
        if not hasattr(suppress_tokens, "__iter__") or isinstance(
            suppress_tokens, (str, bytes, dict)
        ):
            raise ValueError(
                "`suppress_tokens` must be a list of token ids. "
                f"Received: suppress_tokens={checks.shown(suppress_tokens)}"
            )
        suppress_tokens = tuple(suppress_tokens)
        for token in suppress_tokens:
            if not whole(token) or token < 0:
                raise ValueError(
                    "`suppress_tokens` must hold token ids, integers >= 0. "
                    f"Received: {checks.shown(token)}"
                )
        if not whole(min_new_tokens) or min_new_tokens < 0:
            raise ValueError(
                "`min_new_tokens` must be an integer >= 0. "
                f"Received: min_new_tokens={min_new_tokens!r}"
            )
        self.suppress_tokens: tuple[int, ...] = tuple(
            int(token) for token in suppress_tokens
        )
        self.min_new_tokens: int = int(min_new_tokens)
        self.rules = check_rules(rules)

    def start_decoding(self, model: Any, inputs: Nest, length: int) -> Any:
        """Starts the model; by default with its `start_decoding`.

        Args:
            model: object that implements the decoding protocol.
            inputs: nest of tensors for its `start_decoding`.
            length: int. Slots for tokens.

        Returns:
            `DecodingState`.
        """
        return model.start_decoding(inputs, length)

    def decode_step(self, model: Any, state: Any) -> Any:
        """Runs a step of the model; by default its `decode_step`.

        A strategy that reads more of the model than its logits overrides this
        method.

        Args:
            model: object that implements the decoding protocol.
            state: `DecodingState`, consumed.

        Returns:
            Logits, float (R, 1, V); the next `DecodingState`; and a dict of
            further keyword arguments of `choose`.
        """
        return *model.decode_step(state.tokens, state), {}

    def init_state(
        self, batch_size: int, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns the search state before the first step.

        Args:
            batch_size: int. B, the number of sources.
            length: int. Slots for the tokens of each hypothesis.
            spec: `SearchSpec`.

        Returns:
            Nest of tensors.
        """
        raise undefined(self, "init_state")

    def grow_state(
        self, search_state: Nest, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns the search state with `length` slots for tokens.

        Args:
            search_state: nest of tensors.
            length: int. At least as many slots as before.
            spec: `SearchSpec`.

        Returns:
            Nest of tensors.
        """
        raise undefined(self, "grow_state")

    def is_active(self, search_state: Nest) -> Tensor:
        """Returns which hypotheses are still extended, bool (B, k)."""
        raise undefined(self, "is_active")

    def choose(
        self,
        search_state: Nest,
        step: TensorLike,
        log_probs: TensorLike,
        uniforms: TensorLike,
        spec: "SearchSpec",
        scores: TensorLike | None = None,
        ends: TensorLike | None = None,
    ) -> "Choice":
        """Chooses the next token of every hypothesis.

        Args:
            search_state: nest of tensors.
            step: int32 (), the number of tokens generated so far.
            log_probs: float32 (B, k, V), of the next token; -inf where a token
                is not allowed.
            uniforms: what `draw_uniforms` returned, as a tensor, or None.
            spec: `SearchSpec`.
            scores: float32 (B, k, V), what `rules` made of the logits, or of
                the log-probabilities if the strategy reorders, from which to
                choose. Passed if the strategy has rules. Default None.
            ends: bool (B, k, V), which tokens complete a stop string, and so
                end a sequence like an end token. Passed if there are stop
                strings. Default None.

        Returns:
            `Choice`: the next search state, the chosen
            tokens and, if the strategy reorders, the parents.
        """
        raise undefined(self, "choose")

    def finalize(self, search_state: Nest, spec: "SearchSpec") -> "Decoded":
        """Returns the results of a search as `Decoded` of tensors."""
        raise undefined(self, "finalize")

    def active_hypotheses(
        self, search_state: Nest, step: TensorLike, spec: "SearchSpec"
    ) -> "ActiveHypotheses":
        """Returns the hypotheses that are still extended.

        Args:
            search_state: nest of tensors.
            step: int32 (), the number of tokens generated so far.
            spec: `SearchSpec`.

        Returns:
            `ActiveHypotheses` of tensors.
        """
        raise undefined(self, "active_hypotheses")

    def draw_uniforms(
        self, inputs: Nest, max_new_tokens: int, pad_id: int
    ) -> Tensor | None:
        """Draws the random numbers of a search before it starts.

        Args:
            inputs: nest of NumPy arrays, one row per source.
            max_new_tokens: int. L.
            pad_id: int.

        Returns:
            NumPy array with one row per source, or None if the strategy is
            deterministic.
        """
        return None

    def program_config(self) -> dict[str, Any]:
        """Returns the part of the config that the compiled program reads."""
        return self.get_config()

    def constraints(self, spec: "SearchSpec", prefix: Any) -> Constraints:
        """Returns the `Constraints` on the tokens of each step."""
        return Constraints(
            spec.pad_id,
            spec.start_id,
            spec.end_ids,
            self.suppress_tokens,
            self.min_new_tokens,
            prefix,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "suppress_tokens": list(self.suppress_tokens),
            "min_new_tokens": self.min_new_tokens,
            "rules": [
                keras.saving.serialize_keras_object(rule) for rule in self.rules
            ],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the strategy from its config."""
        rules = [
            rule
            if isinstance(rule, LogitsRule)
            else keras.saving.deserialize_keras_object(rule)
            for rule in config.get("rules", ())
        ]
        # Without rules a subclass need not have the argument.
        others = {n: value for n, value in config.items() if n != "rules"}
        return cls(**others, **({"rules": rules} if rules else {}))


def undefined(strategy: Strategy, method: str) -> NotImplementedError:
    """Returns the error for a method that a subclass must define."""
    return NotImplementedError(
        f"A decoding strategy must define `{method}`. "
        f"Received: {type(strategy).__name__} without it"
    )


_METHODS = (
    "init_state",
    "grow_state",
    "is_active",
    "choose",
    "finalize",
    "active_hypotheses",
)


def check_methods(strategy: Strategy) -> None:
    """Raises NotImplementedError if the class of a strategy lacks a method."""
    for name in _METHODS:
        if getattr(type(strategy), name) is getattr(Strategy, name):
            raise undefined(strategy, name)


# More sequences per row would take hours, or more memory than there is.
_MOST_SEQUENCES = 2**16


def check_width(name: str, value: TensorLike) -> int:
    """Returns a number of sequences per row, or raises ValueError."""
    checks.positive_int(name, value)
    return checks.integer(name, value, 1, _MOST_SEQUENCES)


def whole(value: TensorLike) -> bool:
    """Returns whether a value is an integer and not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def real(value: TensorLike) -> bool:
    """Returns whether a value is a real number and not a bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
