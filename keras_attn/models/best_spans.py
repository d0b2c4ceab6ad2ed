"""From the logits of starts and ends to the best legal answer."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_attn import checks


class Spans(NamedTuple):
    """Holds the best answer of each row, as NumPy arrays.

    Args:
        start: int32 (B,). The place of its first token; -1: no answer.
        end: int32 (B,). The place of its last token; -1: no answer.
        score: float32 (B,), in nats: the log-probability of both places, as if
            one did not depend on the other, less that of "no answer". Where it
            is not above 0, there is no answer.

    Examples:
        >>> keras_attn.models.Spans(None, None, None)._fields
        ('start', 'end', 'score')
    """

    start: Any
    end: Any
    score: Any


def best_spans(logits, max_answer_length=None):
    """Finds the likeliest answer of every row that ends behind its start.

        argmax  start[i] + end[j]    over i <= j < i + max_answer_length

    against start[0] + end[0], which stand for "no answer".

    Args:
        logits: float (B, 2, 1 + T), as `SpanExtractor` returns them.
        max_answer_length: int >= 1. The longest answer, in tokens; default
            None, no limit.

    Returns:
        `Spans`.

    Raises:
        ValueError: logits of another shape, or a length that is no length.

    Examples:
        >>> logits = np.log([[[.1, .2, .7], [.1, .8, .1]]])
        >>> spans = keras_attn.models.best_spans(logits)
        >>> int(spans.start[0]), int(spans.end[0])
        (0, 0)
    """
    logits = np.asarray(ops.convert_to_numpy(logits), "float32")
    if logits.ndim != 3 or logits.shape[1] != 2 or logits.shape[2] < 2:
        raise ValueError(
            "`logits` must have shape (batch, 2, 1 + length). "
            f"Received: {logits.shape}"
        )
    if max_answer_length is not None:
        checks.positive_int("max_answer_length", max_answer_length)
    none = logits[:, :, 0].sum(1)
    starts, ends = logits[:, 0, 1:], logits[:, 1, 1:]
    length = starts.shape[1]
    totals = starts[:, :, None] + ends[:, None, :]
    i, j = np.arange(length)[:, None], np.arange(length)
    legal = (i <= j) & (j - i < (max_answer_length or length))
    totals = np.where(legal, totals, -np.inf).reshape(len(logits), -1)
    best = totals.argmax(1)
    score = totals[np.arange(len(logits)), best] - none
    found = score > 0
    start, end = (
        np.where(found, part, -1).astype("int32")
        for part in np.divmod(best, length)
    )
    return Spans(start, end, score)
