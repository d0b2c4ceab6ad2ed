"""Sequences that grow alone, a token a step: greedy search and sampling."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import take_along_axis
from keras_attn.decoding.protocol import Decoded


class Sequences(NamedTuple):
    """Holds k sequences of each source, which know nothing of each other.

    Args:
        tokens: int32 (B, k, L), pad where there is none.
        scores: float32 (B, k), sum of log-probabilities; -inf where no token
            was allowed.
        lengths: int32 (B, k), end token included.
        growing: bool (B, k).
    """

    tokens: Any
    scores: Any
    lengths: Any
    growing: Any


def begin(sources, width, max_new_tokens, pad_id):
    """Returns `Sequences` without a token."""
    return Sequences(
        ops.full((sources, width, max_new_tokens), pad_id, dtype="int32"),
        ops.zeros((sources, width), "float32"),
        ops.zeros((sources, width), "int32"),
        ops.ones((sources, width), "bool"),
    )


def grow(sequences, step, log_probs, chosen, pad_id, end_id):
    """Adds one token to all that are growing.

    Args:
        sequences: `Sequences`.
        step: int32 (). The slot of the new token.
        log_probs: float32 (B, k, V), -inf where a token is not allowed.
        chosen: int32 (B, k). A token of -inf stands for: there is none.
        pad_id: int. What the others go on with.
        end_id: int. What ends a sequence.

    Returns:
        `Sequences`, and int32 (B, k), the tokens of the next step.
    """
    growing = sequences.growing
    gained = take_along_axis(log_probs, chosen[..., None])[..., 0]
    possible = ops.logical_and(growing, gained > -float("inf"))
    chosen = ops.where(possible, chosen, pad_id)
    return Sequences(
        put(sequences.tokens, step, chosen),
        sequences.scores + ops.where(growing, gained, 0.0),
        sequences.lengths + ops.cast(possible, "int32"),
        ops.logical_and(possible, chosen != end_id),
    ), chosen


def put(tokens, step, chosen):
    """Puts tokens (B, k) into slot `step` of tokens (B, k, L)."""
    slot = ops.arange(tokens.shape[-1], dtype="int32") == step
    return ops.where(slot[None, None], chosen[..., None], tokens)


def lengthened(tokens, length, pad_id):
    """Gives tokens (..., L') as many as `length` slots, the new ones pad."""
    extra = length - tokens.shape[-1]
    if not extra:
        return tokens
    width = [(0, 0)] * (len(tokens.shape) - 1) + [(0, extra)]
    return ops.pad(tokens, width, constant_values=pad_id)


def decoded(tokens, scores, lengths, pad_id):
    """Returns `Decoded`, in which what is no sequence is empty.

    A score of -inf says so: everything that could have followed was ruled
    out, or fewer sequences exist than were asked for.
    """
    there = scores > -float("inf")
    return Decoded(
        ops.where(there[..., None], tokens, pad_id),
        scores,
        ops.where(there, lengths, 0),
    )
