"""Rules that name tokens: biases, allowed tokens and forced words."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import count_ids
from keras_attn.decoding.logits_rule import LogitsRule, float32_number
from keras_attn.decoding.strategy import whole
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec


@keras.saving.register_keras_serializable(package="keras_attn")
class LogitBias(LogitsRule):
    """Adds constants to the scores of tokens and sequences.

    The bias of a sequence is added to its last token if the tokens so far, with
    those of the prompt, end with its other tokens, as in Hugging Face's
    `sequence_bias`. Biases that apply to the same token add up.

    Args:
        bias: dict from token ids, or tuples of them, to floats; -inf forbids a
            token or sequence.

    Raises:
        ValueError: `bias` of another form, or ids out of range in the first
            step.

    Examples:
        >>> rule = keras_attn.decoding.LogitBias({5: -2.0, (7, 8): 1.5})
        >>> rule.bias
        {(5,): -2.0, (7, 8): 1.5}
    """

    def __init__(self, bias: Mapping[Any, float]) -> None:
        if not isinstance(bias, dict) or not bias:
            raise ValueError(
                "`bias` must be a dict from token ids, or tuples of them, to "
                f"numbers. Received: bias={checks.shown(bias)}"
            )
        self.bias: dict[tuple[int, ...], float] = {}
        for ids, number in bias.items():
            ids = ids if isinstance(ids, tuple) else (ids,)
            ids = _sequence("bias", ids)
            if ids in self.bias:
                raise ValueError(
                    "`bias` must have one value for each token. "
                    f"Received: bias={checks.shown(bias)}"
                )
            is_minus_infinity = (
                isinstance(number, float) and number == -math.inf
            )
            self.bias[ids] = (
                number if is_minus_infinity else float32_number("bias", number)
            )

    @property
    def can_be_positive(self) -> bool:
        """Whether one of the biases is above 0."""
        return max(self.bias.values()) > 0

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Adds the biases."""
        size = scores.shape[-1]
        _check_range("bias", self.bias, size)
        always = np.zeros(size, "float32")
        for ids, number in self.bias.items():
            if len(ids) == 1:
                always[ids[0]] += number
        scores = scores + ops.convert_to_tensor(always)
        for ids, number in self.bias.items():
            *before, last = ids
            if before:
                added = np.zeros(size, "float32")
                added[last] = number
                ends = _ends_with(tokens, before)[..., None]
                scores = scores + ops.where(
                    ends, ops.convert_to_tensor(added), 0.0
                )
        return scores

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"bias": [[list(ids), n] for ids, n in self.bias.items()]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the rule from its config, in which the ids are lists."""
        return cls({tuple(ids): number for ids, number in config["bias"]})


@keras.saving.register_keras_serializable(package="keras_attn")
class AllowedTokens(LogitsRule):
    """Allows the tokens that a function of the tokens so far names.

    As `prefix_allowed_tokens_fn` of Hugging Face, but as a function of tensors
    that is compiled: it must not read their values.

    Args:
        function: callable. Takes `tokens`, `step` and `spec` as
            `LogitsRule.apply` does, and the size V of the vocabulary; returns
            bool (B, k, V) or a shape that broadcasts to it, True for allowed
            tokens. Pass the same function to every search: another one is
            compiled again. Its strategy can be serialized if Keras can
            serialize the function.

    Raises:
        ValueError: `function` is not callable, or returns no bools of that
            shape.

    Examples:
        Alternates even and odd tokens:

        >>> def alternate(tokens, step, spec, size):
        ...     ids = keras.ops.arange(size, dtype="int32")
        ...     return (ids + tokens[..., -1:]) % 2 == 1
        >>> rule = keras_attn.decoding.AllowedTokens(alternate)
        >>> strategy = keras_attn.decoding.GreedySearch(rules=[rule])
        >>> len(strategy.rules)
        1
    """

    can_be_positive = False

    def __init__(self, function: Callable[..., Tensor]) -> None:
        if not callable(function) or isinstance(function, type):
            raise ValueError(
                "`function` must be a function of `tokens`, `step`, `spec` and "
                f"the vocabulary size. Received: {checks.shown(function)}"
            )
        self.function = function

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of the other tokens to -inf."""
        shape = tuple(scores.shape)
        allowed = self.function(tokens, step, spec, shape[-1])
        is_bool = hasattr(allowed, "dtype") and (
            keras.backend.standardize_dtype(allowed.dtype) == "bool"
        )
        if not is_bool or not _broadcasts(tuple(allowed.shape), shape):
            raise ValueError(
                f"`function` of AllowedTokens must return bool of shape {shape}"
                f". Received: {checks.shown(allowed)}"
            )
        return ops.where(allowed, scores, -math.inf)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        function = keras.saving.serialize_keras_object(self.function)
        return {"function": function}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the rule from its config."""
        function = config["function"]
        if not callable(function):
            function = keras.saving.deserialize_keras_object(function)
        return cls(function)


@keras.saving.register_keras_serializable(package="keras_attn")
class AllowedSequences(LogitsRule):
    """Generates one of the given sequences, as a trie allows.

    In each step, the tokens that continue a sequence are allowed; after a
    complete one, the end tokens. De Cao et al. 2021,
    https://arxiv.org/abs/2010.00904. The tokens of the prompt do not count.

    Args:
        sequences: list of lists of token ids, without the end token. One may
            be the beginning of another one.

    Raises:
        ValueError: `sequences` of another form; in the first step, ids out of
            range or of special tokens, or a model without an end token.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, end_id=2,
        ...     max_sequence_length=16)
        >>> rule = keras_attn.decoding.AllowedSequences([[5, 6], [7], [7, 8]])
        >>> strategy = keras_attn.decoding.BeamSearch(3, 3, rules=[rule])
        >>> found = model.generate([[3, 4]], 4, strategy).tokens
        >>> sorted(found[0].tolist())
        [[5, 6, 2, 0], [7, 2, 0, 0], [7, 8, 2, 0]]
    """

    can_be_positive = False

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self.sequences: tuple[tuple[int, ...], ...] = _sequences(
            "sequences", sequences
        )

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of tokens that continue no sequence to -inf."""
        size, slots = scores.shape[-1], tokens.shape[-1]
        _check_words("sequences", self.sequences, size, spec)
        if not spec.end_ids:
            raise ValueError(
                "`rules` can hold AllowedSequences if the model has an "
                "`end_id`, which ends them. Received: end_id=None"
            )
        parents, labels, complete = (
            ops.convert_to_tensor(array) for array in _trie(self.sequences)
        )
        numbers = ops.arange(1, parents.shape[0] + 1, dtype="int32")
        # The node of each hypothesis: from the root, 0, along its tokens; -1
        # after a token that no sequence has.
        node = ops.zeros_like(tokens[..., 0])
        depth = max(map(len, self.sequences))
        for index in range(min(depth + 1, slots)):
            at = ops.clip(slots - step + index, 0, slots - 1)
            token = ops.take(tokens, at, axis=-1)
            found = ops.equal(node[..., None], parents)
            found = found & ops.equal(token[..., None], labels)
            child = ops.sum(ops.where(found, numbers, 0), axis=-1)
            child = ops.cast(ops.where(child == 0, -1, child), "int32")
            node = ops.where(index < step, child, node)
        children = ops.equal(node[..., None], parents)
        allowed = count_ids(ops.where(children, labels, -1), size) > 0
        done = ops.any(ops.equal(node[..., None], numbers) & complete, axis=-1)
        ends = ops.convert_to_tensor(np.isin(np.arange(size), spec.end_ids))
        allowed = allowed | (done[..., None] & ends)
        return ops.where(allowed, scores, -math.inf)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"sequences": [list(ids) for ids in self.sequences]}


@keras.saving.register_keras_serializable(package="keras_attn")
class ForcedWords(LogitsRule):
    """Generates sequences that contain all given words.

    A word is a sequence of tokens. With n tokens left, a token v is allowed if
    the words can still be completed after it:

        need(y v) <= n - 1,  and need(y) = 0 for an end token
        need(y) = sum of the lengths of the words that y does not contain
                  - max of the lengths of their beginnings that y ends with

    The model chooses when a word begins, as in the constrained search of
    Hokamp & Liu 2017, https://arxiv.org/abs/1704.07138; the inequality forces
    it at the latest when there is just enough room. Words that overlap in the
    output count, but no room is saved for it. The tokens of the prompt do not
    count.

    Args:
        words: list of lists of token ids, of one word each.

    Raises:
        ValueError: `words` of another form; in the first step, ids out of range
            or of special tokens, or more than `max_new_tokens` tokens.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, end_id=2,
        ...     max_sequence_length=16)
        >>> strategy = keras_attn.decoding.BeamSearch(
        ...     rules=[keras_attn.decoding.ForcedWords([[5, 6], [7]])])
        >>> tokens = model.generate([[3, 4]], 8, strategy).tokens[0, 0].tolist()
        >>> 7 in tokens and (5, 6) in zip(tokens, tokens[1:])
        True
    """

    can_be_positive = False

    def __init__(self, words: Sequence[Sequence[int]]) -> None:
        self.words: tuple[tuple[int, ...], ...] = _sequences("words", words)

    def apply(
        self,
        scores: TensorLike,
        tokens: TensorLike,
        step: TensorLike,
        spec: "SearchSpec",
    ) -> Tensor:
        """Sets the scores of tokens that leave too little room to -inf."""
        size = scores.shape[-1]
        _check_words("words", self.words, size, spec)
        total = sum(map(len, self.words))
        if total > spec.max_new_tokens:
            raise ValueError(
                "`words` of ForcedWords must not have more tokens than "
                f"max_new_tokens={spec.max_new_tokens}. Received: {total} "
                "tokens"
            )
        missing, ended = self.missing(scores, tokens, step)
        room = spec.max_new_tokens - 1 - step
        allowed = missing <= room
        ends = ops.convert_to_tensor(np.isin(np.arange(size), spec.end_ids))
        allowed = allowed & (ended[..., None] | ops.logical_not(ends))
        return ops.where(allowed, scores, -math.inf)

    def missing(
        self, scores: TensorLike, tokens: TensorLike, step: TensorLike
    ) -> tuple[Tensor, Tensor]:
        """Returns how many tokens of the words are missing after each token.

        Args:
            scores: float32 (B, k, V), of which only the shape is read.
            tokens: int32 (B, k, P + L), as for `apply`.
            step: int32 (), the number of tokens generated so far.

        Returns:
            Int32 (B, k, V), need(y v) of each next token v; bool (B, k),
            whether no token is missing now.
        """
        size, slots = scores.shape[-1], tokens.shape[-1]
        indices = ops.arange(slots, dtype="int32")
        generated = ops.where(indices >= slots - step, tokens, -1)
        ids = np.arange(size)
        missing, begun, ended = 0, 0, True
        for word in self.words:
            lacks = ops.logical_not(_contains(generated, word))
            ended = ops.logical_not(lacks) & ended
            # Of each next token: how much of the word it brings.
            reached = ops.zeros_like(scores, dtype="int32")
            for length in range(1, len(word) + 1):
                fits = _ends_with(generated, word[: length - 1])
                adds = ops.convert_to_tensor(ids == word[length - 1])
                reached = ops.where(fits[..., None] & adds, length, reached)
            lacks = lacks[..., None] & (reached < len(word))
            missing = missing + ops.where(lacks, len(word), 0)
            begun = ops.maximum(begun, ops.where(lacks, reached, 0))
        return missing - begun, ended

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"words": [list(ids) for ids in self.words]}


def _sequences(name, sequences):
    """Returns a tuple of tuples of token ids, or raises ValueError."""
    if not isinstance(sequences, (list, tuple)) or not len(sequences):
        raise ValueError(
            f"`{name}` must be a list of lists of token ids, at least one. "
            f"Received: {name}={checks.shown(sequences)}"
        )
    return tuple(_sequence(name, ids) for ids in sequences)


def _sequence(name, ids):
    """Returns a tuple of token ids, at least one, or raises ValueError."""
    if not isinstance(ids, (list, tuple)) or not ids:
        raise ValueError(
            f"`{name}` must hold sequences of token ids, at least one id each. "
            f"Received: {checks.shown(ids)}"
        )
    for number in ids:
        if not whole(number) or not 0 <= number < 2**31:
            raise ValueError(
                f"`{name}` must hold token ids, integers >= 0. "
                f"Received: {checks.shown(number)}"
            )
    return tuple(map(int, ids))


def _check_range(name, sequences, size):
    outside = sorted({v for ids in sequences for v in ids if v >= size})
    if outside:
        raise ValueError(
            f"`{name}` must lie in [0, {size}). "
            f"Received: {checks.shown(outside)}"
        )


def _check_words(name, sequences, size, spec):
    _check_range(name, sequences, size)
    special = {spec.pad_id, spec.start_id, *spec.end_ids}
    wrong = sorted({v for ids in sequences for v in ids} & special)
    if wrong:
        raise ValueError(
            f"`{name}` must hold no padding, start or end token. "
            f"Received: the ids {wrong}"
        )


def _trie(sequences):
    """Returns the nodes of a trie, without its root.

    Returns:
        Int32 (n,), the parent of each node, 0 for the root and i + 1 for node
        i; int32 (n,), its token; bool (n,), whether a sequence ends there.
    """
    numbers = {(): 0}
    for ids in sequences:
        for length in range(1, len(ids) + 1):
            numbers.setdefault(ids[:length], len(numbers))
    nodes = list(numbers)[1:]
    given = set(sequences)
    return (
        np.array([numbers[ids[:-1]] for ids in nodes], "int32"),
        np.array([ids[-1] for ids in nodes], "int32"),
        np.array([ids in given for ids in nodes]),
    )


def _ends_with(tokens, word):
    """Returns whether tokens (..., S) end with a word, bool (...)."""
    if len(word) > tokens.shape[-1]:
        return ops.zeros_like(tokens[..., 0], dtype="bool")
    last = tokens[..., tokens.shape[-1] - len(word) :]
    word = ops.convert_to_tensor(np.array(word, "int32"))
    return ops.all(ops.equal(last, word), axis=-1)


def _contains(tokens, word):
    """Returns whether a word occurs in tokens (..., S), bool (...)."""
    count = tokens.shape[-1] - len(word) + 1
    if count < 1:
        return ops.zeros_like(tokens[..., 0], dtype="bool")
    found = ops.ones_like(tokens[..., :count], dtype="bool")
    for index, token in enumerate(word):
        found = found & ops.equal(tokens[..., index : index + count], token)
    return ops.any(found, axis=-1)


def _broadcasts(shape, expected):
    if len(shape) > len(expected):
        return False
    ends = expected[len(expected) - len(shape) :]
    return all(size in (1, end) for size, end in zip(shape, ends, strict=True))
