"""Answer spans from start and end logits."""

import math
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.typing import TensorLike


class Spans(NamedTuple):
    """The best answer of each row, as NumPy arrays.

    Args:
        start: int32 (B,). Position of the first token; -1: no answer.
        end: int32 (B,). Position of the last token; -1: no answer.
        score: float32 (B,), in nats: the log-probability of the start and the
            end, taken as independent, minus that of "no answer".

    Examples:
        >>> keras_attn.models.Spans(None, None, None)._fields
        ('start', 'end', 'score')
    """

    start: Any
    end: Any
    score: Any


def best_spans(
    logits: TensorLike,
    max_answer_length: int | None = None,
    threshold: float = 0.0,
) -> Spans:
    """Finds the most likely valid answer span of each row.

        argmax  start[i] + end[j]    over i <= j < i + max_answer_length

    compared with start[0] + end[0], the score of "no answer" (Devlin et al.
    2019, sec. 4.3, https://arxiv.org/abs/1810.04805).

    Args:
        logits: float (B, 2, 1 + T), as `SpanExtractor` returns them.
        max_answer_length: int >= 1. The longest answer, in tokens. Default:
            no limit.
        threshold: float, in nats. A span is an answer if its score is higher.
            -inf: there always is an answer. Default 0.0.

    Returns:
        `Spans`.

    Raises:
        ValueError: logits of another shape or dtype, or that are NaN or
            +inf, an invalid length, or a threshold that is NaN.

    Examples:
        >>> logits = np.log([[[.1, .2, .7], [.1, .8, .1]]])
        >>> spans = keras_attn.models.best_spans(logits)
        >>> int(spans.start[0]), int(spans.end[0])
        (0, 0)
    """
    logits = _numbers(logits)
    if logits.ndim != 3 or logits.shape[1] != 2 or logits.shape[2] < 2:
        raise ValueError(
            "`logits` must have shape (batch, 2, 1 + length). "
            f"Received: {logits.shape}"
        )
    if max_answer_length is not None:
        checks.positive_int("max_answer_length", max_answer_length, most=None)
    if not (isinstance(threshold, float) and threshold == -math.inf):
        checks.real("threshold", threshold)
    # -inf is a position that is no answer.
    if not (logits < np.inf).all():
        raise ValueError("`logits` must not be NaN or +inf. Received: some are")
    none = logits[:, :, 0].sum(1)
    starts, ends = logits[:, 0, 1:], logits[:, 1, 1:]
    length = starts.shape[1]
    totals = starts[:, :, None] + ends[:, None, :]
    i, j = np.arange(length)[:, None], np.arange(length)
    valid = (i <= j) & (j - i < (max_answer_length or length))
    totals = np.where(valid, totals, -np.inf).reshape(len(logits), -1)
    best = totals.argmax(1)
    score = totals[np.arange(len(logits)), best] - none
    found = score > threshold
    start, end = (
        np.where(found, part, -1).astype("int32")
        for part in np.divmod(best, length)
    )
    return Spans(start, end, score)


def _numbers(logits):
    try:
        array = np.asarray(ops.convert_to_numpy(checks.sized("logits", logits)))
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            "`logits` must be an array or a tensor of numbers. "
            f"Received: logits of type {type(logits).__name__}"
        ) from error
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise ValueError(
            "`logits` must be an array or a tensor of numbers. "
            f"Received: {array.dtype} of shape {array.shape}"
        )
    return array.astype("float32")
