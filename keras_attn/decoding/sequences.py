"""Independent sequences, for greedy search and sampling."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import full, take_along_axis
from keras_attn.decoding.protocol import Decoded
from keras_attn.typing import Tensor, TensorLike


class Sequences(NamedTuple):
    """k independent sequences per source.

    Args:
        tokens: int32 (B, k, L), padded at the end.
        scores: float32 (B, k), sum of log-probabilities; -inf if no token
            was allowed.
        lengths: int32 (B, k), end token included.
        growing: bool (B, k), which sequences have not ended.
    """

    tokens: Any
    scores: Any
    lengths: Any
    growing: Any


def begin(
    sources: Any, width: int, max_new_tokens: int, pad_id: int
) -> Sequences:
    """Returns empty `Sequences`."""
    return Sequences(
        full((sources, width, max_new_tokens), pad_id, dtype="int32"),
        ops.zeros((sources, width), "float32"),
        ops.zeros((sources, width), "int32"),
        ops.ones((sources, width), "bool"),
    )


def grow(
    sequences: Sequences,
    step: TensorLike,
    log_probs: TensorLike,
    chosen: TensorLike,
    pad_id: int,
    end_ids: tuple[int, ...],
    ends: TensorLike | None = None,
) -> tuple[Sequences, Tensor]:
    """Appends one token to each sequence that has not ended.

    Args:
        sequences: `Sequences`.
        step: int32 (). The slot of the new token.
        log_probs: float32 (B, k, V), -inf where a token is not allowed.
        chosen: int32 (B, k). A token with -inf means that none is allowed.
        pad_id: int. Next token of the others.
        end_ids: tuple of int. Tokens that end a sequence.
        ends: bool (B, k, V), which other tokens end a sequence. Default None.

    Returns:
        `Sequences`, and int32 (B, k), the tokens of the next step.
    """
    growing = sequences.growing
    gained = take_along_axis(log_probs, chosen[..., None])[..., 0]
    possible = ops.logical_and(growing, gained > -float("inf"))
    stopped = ops.zeros_like(possible)
    if ends is not None:
        stopped = take_along_axis(ends, chosen[..., None])[..., 0]
    chosen = ops.where(possible, chosen, pad_id)
    stopped = ops.logical_or(stopped, is_any_of(chosen, end_ids))
    return Sequences(
        put(sequences.tokens, step, chosen),
        sequences.scores + ops.where(growing, gained, 0.0),
        sequences.lengths + ops.cast(possible, "int32"),
        ops.logical_and(possible, ops.logical_not(stopped)),
    ), chosen


def is_any_of(tokens: TensorLike, ids: tuple[int, ...]) -> Tensor:
    """Returns whether tokens are among some ids, bool of their shape.

    Args:
        tokens: int32 tensor.
        ids: tuple of int.
    """
    found = ops.zeros_like(tokens, dtype="bool")
    for number in ids:
        found = ops.logical_or(found, ops.equal(tokens, number))
    return found


def put(tokens: Any, step: TensorLike, chosen: TensorLike) -> Any:
    """Writes tokens (B, k) into slot `step` of tokens (B, k, L)."""
    slot = ops.arange(tokens.shape[-1], dtype="int32") == step
    return ops.where(slot[None, None], chosen[..., None], tokens)


def lengthened(tokens: Any, length: int, pad_id: int) -> Any:
    """Pads tokens (..., L') to `length` slots."""
    extra = length - tokens.shape[-1]
    if not extra:
        return tokens
    width = [(0, 0)] * (len(tokens.shape) - 1) + [(0, extra)]
    return ops.pad(tokens, width, constant_values=pad_id)


def decoded(
    tokens: Any, scores: TensorLike, lengths: TensorLike, pad_id: int
) -> Decoded:
    """Returns `Decoded`, with sequences of score -inf emptied.

    Their score is -inf if no token was allowed, or if fewer sequences exist
    than were requested.
    """
    exists = scores > -float("inf")
    return Decoded(
        ops.where(exists[..., None], tokens, pad_id),
        scores,
        ops.where(exists, lengths, 0),
    )
