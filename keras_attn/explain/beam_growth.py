"""The hypotheses of a beam search, reconstructed from its stream."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_attn.explain.arguments import index

if TYPE_CHECKING:
    from keras_attn.decoding.stream import StreamedToken


class Hypothesis(NamedTuple):
    """A hypothesis at the step that added its last token.

    Args:
        tokens: tuple of int. All its tokens.
        score: float. Its log-probability in nats; if finished, its
            length-normalized score.
        fate: `"continued"`: a hypothesis of the next step extends it;
            `"dropped"`: none does; `"returned"`: it is finished and among the
            results; `"surpassed"`: it is finished and not among them.
        place: int. Its rank among the results, from 1; 0 if it is not one.
    """

    tokens: tuple[Any, ...]
    score: float
    fate: str
    place: int = 0


def beam_growth(items: "Iterable[StreamedToken]", row: int = 0) -> list[Any]:
    """Returns the hypotheses of one source, step by step.

    Args:
        items: iterable of `keras_attn.decoding.StreamedToken`, all of a stream.
        row: int in [0, B). The source.

    Returns:
        List with one item per step, each a list of `Hypothesis`: the active
        ones, most likely first, then those that finished at this step, best
        first.

    Raises:
        ValueError: no items, or `row` out of range.
    """
    one = hasattr(items, "active") or hasattr(items, "shape")
    if one or not hasattr(items, "__iter__"):
        raise ValueError(
            "`items` must hold the items of a stream, at least one. "
            f"Received: items of type {type(items).__name__}"
        )
    items = list(items)
    if not items or not all(hasattr(x, "active") for x in items):
        raise ValueError(
            "`items` must hold the items of a stream, at least one. "
            f"Received: {[type(item).__name__ for item in items[:3]]}"
        )
    count = len(items[0].active.scores)
    row = index("row", row, count, "the rows of the stream")
    steps = [_of_step(item, row) for item in items]
    results, _ = _sequences(items[-1], row)
    growth = []
    for number, (active, ended) in enumerate(steps):
        later = steps[number + 1 :][:1]
        parents = {
            tokens[:-1] for found in later for part in found for tokens in part
        }
        growth.append(
            [
                Hypothesis(
                    tokens,
                    score,
                    "continued" if tokens in parents else "dropped",
                )
                for tokens, score in _best_first(active)
            ]
            + [_ended(*pair, results) for pair in _best_first(ended)]
        )
    while growth and not growth[-1]:
        # Steps that only other sources needed.
        growth.pop()
    return growth


def _of_step(item, row):
    """Returns active and newly finished hypotheses: {tokens: score} each."""
    active, _ = _sequences(item.active, row)
    found, lengths = _sequences(item, row)
    ended = {
        tokens: score
        for tokens, score in found.items()
        if lengths[tokens] == item.step and tokens not in active
    }
    return active, ended


def _sequences(found, row):
    scores, lengths = {}, {}
    for tokens, score, length in zip(
        found.tokens[row], found.scores[row], found.lengths[row], strict=True
    ):
        if score > -np.inf:
            tokens = tuple(tokens[:length].tolist())
            scores[tokens], lengths[tokens] = float(score), int(length)
    return scores, lengths


def _best_first(scores):
    return sorted(scores.items(), key=lambda pair: -pair[1])


def _ended(tokens, score, results):
    if tokens not in results:
        return Hypothesis(tokens, score, "surpassed")
    rank = list(results).index(tokens) + 1
    return Hypothesis(tokens, score, "returned", rank)
