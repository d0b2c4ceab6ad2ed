"""Speculative decoding: a strategy whose tokens are drafted and verified."""

from typing import Any, NamedTuple

import keras
import numpy as np

from keras_attn import checks
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.sampling import Sampling
from keras_attn.typing import Nest, Tensor

_BY_NAME = {"greedy": GreedySearch, "sample": Sampling}
# A target call reads so many tokens of a row: its attention is T x S.
_MOST_TOKENS = 1024


class SpeculativeCounts(NamedTuple):
    """What speculative decoding did for each sequence, as NumPy arrays.

    A sequence has `num_accepted_tokens` drafted tokens, and at most one of the
    target's own from each call.

    Args:
        num_target_calls: int32 (B, t). Calls of the target while the sequence
            was extended.
        num_draft_tokens: int32 (B, t). Tokens that these calls verified.
        num_accepted_tokens: int32 (B, t). Drafted tokens in the sequence.

    Examples:
        >>> counts = keras_attn.decoding.SpeculativeCounts(2, 8, 6)
        >>> counts.num_accepted_tokens / counts.num_target_calls
        3.0
    """

    num_target_calls: Any
    num_draft_tokens: Any
    num_accepted_tokens: Any


class SpeculativeSampling(Sampling):
    """Sampling with three random numbers per token.

    They draw the drafted token, accept it, and draw the target's own token. A
    token depends only on the numbers of its own index and on the tokens before
    it, although an index may be drafted more than once: what a discarded draft
    drew has decided nothing.
    """

    def draw_uniforms(
        self, inputs: Nest, max_new_tokens: int, pad_id: int
    ) -> Tensor:
        """Returns NumPy float32 (B, 3 t, L)."""
        tripled = SpeculativeSampling(seed=self.seed)
        tripled.num_return_sequences = 3 * self.num_return_sequences
        return Sampling.draw_uniforms(tripled, inputs, max_new_tokens, pad_id)


class Speculation:
    """Base class of `SpeculativeDecoding` and `PromptLookup`.

    Args:
        strategy: `GreedySearch` or `Sampling`, or `"greedy"` or `"sample"`.
    """

    assistant_model: Any = None
    # Tokens of the longest n-gram that is looked up.
    ngram_size = 0

    def __init__(self, strategy: "GreedySearch | Sampling | str") -> None:
        if isinstance(strategy, str):
            checks.choice("strategy", strategy, tuple(_BY_NAME))
            strategy = _BY_NAME[strategy]()
        # Not a subclass: what it changes would be lost.
        if type(strategy) not in (GreedySearch, Sampling):
            raise ValueError(
                "`strategy` of speculative decoding must be `GreedySearch` or "
                '`Sampling`, or "greedy" or "sample". '
                f"Received: strategy={checks.shown(strategy)}"
            )
        if strategy.rules:
            names = [type(rule).__name__ for rule in strategy.rules]
            raise ValueError(
                "`strategy` of speculative decoding must have no `rules`, "
                "which score one token of each row at a time. "
                f"Received: rules={checks.shown(names)}"
            )
        self.strategy = strategy

    @property
    def draft_length(self) -> int:
        """Maximum number of tokens that are drafted for a target call."""
        raise NotImplementedError

    def drawing(self, max_new_tokens: int) -> "GreedySearch | Sampling":
        """Returns the strategy that draws tokens.

        Args:
            max_new_tokens: int. A single token is not drafted.
        """
        if isinstance(self.strategy, GreedySearch) or max_new_tokens == 1:
            return self.strategy
        return SpeculativeSampling(**self.strategy.get_config())

    def check(self, model: Any) -> None:
        """Raises ValueError unless a model can be the target."""
        _check_kind("model", model)
        if keras.distribution.distribution() is not None:
            raise ValueError(
                "`strategy` must not be speculative under "
                "`keras.distribution`: its rows advance independently. "
                f"Received: {type(self).__name__}"
            )

    def check_room(
        self, inputs: Nest, max_new_tokens: int, limit: int | None
    ) -> int | None:
        """Returns the maximum length of padded prompts.

        Args:
            inputs: nest of arrays with the prompts.
            max_new_tokens: int. L.
            limit: int, that of the model, or None.

        Raises:
            ValueError: prompts that are too long for the assistant.
        """
        return limit


class SpeculativeDecoding(Speculation):
    """Speculative decoding: a small model drafts, the large one verifies.

    The assistant drafts a few tokens, one at a time. The model then reads them
    all in one call and accepts as many as it would have generated itself:

        greedy search: those before the first that differs from its own choice
        sampling: x with probability min(1, p(x) / q(x)); after a rejection, a
        token of norm(max(0, p - q)); after the last draft, one of p

    with the model's p and the assistant's q, both after `temperature`, `top_k`,
    `top_p` and the other constraints (Leviathan et al. 2023,
    https://arxiv.org/abs/2211.17192; Chen et al. 2023,
    https://arxiv.org/abs/2302.01318). Tokens and scores are those of greedy
    search, except where two tokens tie up to float rounding, since the model
    reads several tokens in one call instead of one; samples have the same
    distribution as those of `Sampling`, and are other samples. Each row accepts
    its own number of tokens: `Decoded.speculation` has the counts.

    Both models must be a `GPT`, with the same vocabulary. `stream`, `rules` and
    `keras.distribution` are not supported.

    Args:
        assistant_model: `GPT` that drafts. Its special ids are not used.
        num_speculative_tokens: int in [1, 1023]. Tokens drafted for each call
            of the model. Default 5.
        strategy: `GreedySearch` or `Sampling`, without rules, or `"greedy"` or
            `"sample"`. Default `"greedy"`.

    Raises:
        ValueError: arguments out of range, or another model or strategy.

    Examples:
        >>> model, small = (
        ...     keras_attn.models.GPT(
        ...         20, num_layers=layers, num_heads=2, hidden_dim=8,
        ...         max_sequence_length=32, end_id=None)
        ...     for layers in (2, 1))
        >>> strategy = keras_attn.decoding.SpeculativeDecoding(small)
        >>> decoded = model.generate([[5, 6], [7]], 8, strategy)
        >>> greedy = model.generate([[5, 6], [7]], 8)
        >>> bool((decoded.tokens == greedy.tokens).all())
        True
        >>> bool((decoded.speculation.num_target_calls <= 8).all())
        True
    """

    def __init__(
        self,
        assistant_model: Any,
        num_speculative_tokens: int = 5,
        strategy: "GreedySearch | Sampling | str" = "greedy",
    ) -> None:
        super().__init__(strategy)
        _check_kind("assistant_model", assistant_model)
        checks.integer(
            "num_speculative_tokens",
            num_speculative_tokens,
            1,
            _MOST_TOKENS - 1,
        )
        self.assistant_model = assistant_model
        self.num_speculative_tokens: int = int(num_speculative_tokens)

    @property
    def draft_length(self) -> int:
        """Maximum number of tokens that are drafted for a target call."""
        return self.num_speculative_tokens

    def check(self, model: Any) -> None:
        """Raises ValueError unless a model can be the target."""
        super().check(model)
        size = self.assistant_model.vocabulary_size
        if size != model.vocabulary_size:
            raise ValueError(
                "`assistant_model` must have the vocabulary of the model, "
                f"{model.vocabulary_size} tokens. Received: {size} tokens"
            )

    def check_room(
        self, inputs: Nest, max_new_tokens: int, limit: int | None
    ) -> int | None:
        """Returns the maximum length of padded prompts.

        Args:
            inputs: nest of arrays with the prompts.
            max_new_tokens: int. L.
            limit: int, that of the model, or None.

        Raises:
            ValueError: prompts that are too long for the assistant.
        """
        own = self.assistant_model.max_sequence_length
        if own is None:
            return limit
        longest = _longest(inputs)
        if longest + max_new_tokens - 1 > own:
            raise ValueError(
                "`inputs` and `max_new_tokens` together must not exceed the "
                "position table of `assistant_model`, "
                f"max_sequence_length={own} rows. Received: {longest} tokens "
                f"and max_new_tokens={max_new_tokens}"
            )
        return own if limit is None else min(own, limit)


class PromptLookup(Speculation):
    """Prompt lookup decoding: drafts are copied from the tokens so far.

    The draft is what followed the first earlier occurrence of the last n-gram,
    the longest that occurs, in the prompt or the generated tokens (Saxena 2023,
    https://github.com/apoorvumang/prompt-lookup-decoding). The model verifies
    it as in `SpeculativeDecoding`, with q(x) = 1: results and conditions are
    the same, and there is no second model. It helps where outputs repeat their
    prompts, as in summaries, or code that is edited.

    Args:
        prompt_lookup_num_tokens: int in [1, 1023]. Maximum number of tokens
            drafted for each call of the model. Default 10.
        max_matching_ngram_size: int >= 1. Tokens of the longest n-gram.
            Default 2.
        strategy: `GreedySearch` or `Sampling`, without rules, or `"greedy"` or
            `"sample"`. Default `"greedy"`.

    Raises:
        ValueError: arguments out of range, or another strategy.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=1, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=32, end_id=None)
        >>> strategy = keras_attn.decoding.PromptLookup(4)
        >>> decoded = model.generate([[5, 6, 7, 5, 6]], 8, strategy)
        >>> decoded.tokens.shape, decoded.speculation.num_target_calls.shape
        ((1, 1, 8), (1, 1))
    """

    def __init__(
        self,
        prompt_lookup_num_tokens: int = 10,
        max_matching_ngram_size: int = 2,
        strategy: "GreedySearch | Sampling | str" = "greedy",
    ) -> None:
        super().__init__(strategy)
        checks.integer(
            "prompt_lookup_num_tokens",
            prompt_lookup_num_tokens,
            1,
            _MOST_TOKENS - 1,
        )
        checks.integer(
            "max_matching_ngram_size",
            max_matching_ngram_size,
            1,
            _MOST_TOKENS,
        )
        self.prompt_lookup_num_tokens: int = int(prompt_lookup_num_tokens)
        self.max_matching_ngram_size: int = int(max_matching_ngram_size)

    @property
    def draft_length(self) -> int:
        """Maximum number of tokens that are drafted for a target call."""
        return self.prompt_lookup_num_tokens

    @property
    def ngram_size(self) -> int:
        """Tokens of the longest n-gram that is looked up."""
        return self.max_matching_ngram_size


def single_calls(decoded: Any) -> SpeculativeCounts:
    """Returns the counts of a search of one step.

    Args:
        decoded: `Decoded`.
    """
    lengths = decoded.lengths
    none = np.zeros_like(lengths)
    return SpeculativeCounts(np.ones_like(lengths), none, none)


def _check_kind(name, model):
    if isinstance(model, type) or not hasattr(model, "check_speculation"):
        kind = model if isinstance(model, type) else type(model)
        raise ValueError(
            f"`{name}` must be a `GPT` in speculative decoding, whose cache "
            f"can drop tokens of each row. Received: {kind.__name__}"
        )
    model.check_speculation(name)


def _longest(inputs):
    """Returns the length of the longest prompt."""
    if isinstance(inputs, dict):
        inputs = inputs["token_ids"]
    if inputs.dtype == object:
        return max(map(len, inputs))
    return inputs.shape[1]
