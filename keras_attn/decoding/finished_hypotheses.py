"""The best finished hypotheses of each source."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.backend import full, gather_rows, take_along_axis, top_k
from keras_attn.typing import TensorLike


class Finished(NamedTuple):
    """The t best finished hypotheses of each source, best first.

    Args:
        tokens: int32 (B, t, L), padded after the end.
        scores: float32 (B, t), normalized; -inf if there is none yet.
        lengths: int32 (B, t), end token included.
    """

    tokens: Any
    scores: Any
    lengths: Any


def none_finished(
    sources: Any, top: Any, max_new_tokens: int, pad_id: int
) -> Finished:
    """Returns `Finished` without a hypothesis."""
    return Finished(
        full((sources, top, max_new_tokens), pad_id, dtype="int32"),
        full((sources, top), -float("inf"), dtype="float32"),
        ops.zeros((sources, top), "int32"),
    )


def merged(
    finished: Finished,
    tokens: TensorLike,
    scores: TensorLike,
    length: TensorLike,
) -> Finished:
    """Merges newly finished hypotheses into the t best.

    Args:
        finished: `Finished`. Wins ties against the new ones.
        tokens: int32 (B, k, L).
        scores: float32 (B, k), normalized; -inf if not finished.
        length: int32 (), of all new hypotheses.

    Returns:
        `Finished`.
    """
    top = finished.scores.shape[1]
    lengths = ops.zeros_like(scores, dtype="int32") + length
    scores, indices = top_k(ops.concatenate([finished.scores, scores], 1), top)
    tokens = ops.concatenate([finished.tokens, tokens], 1)
    lengths = ops.concatenate([finished.lengths, lengths], 1)
    return Finished(
        picked(tokens, indices),
        scores,
        take_along_axis(lengths, indices),
    )


def picked(tokens: Any, indices: TensorLike) -> Any:
    """Gathers sequences (B, k', L) from (B, k, L) by int32 (B, k')."""
    sources, count, length = tokens.shape
    rows = ops.arange(sources, dtype="int32")[:, None] * count + indices
    return gather_rows(ops.reshape(tokens, (-1, length)), rows)
