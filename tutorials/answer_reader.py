"""Reads passages with a trained `SpanExtractor`, and decides on answers."""

from typing import Any, NamedTuple

import numpy as np

from keras_attn.models import best_spans

_STEP = 24  # Rows are padded to a multiple of it: few programs to compile.
_NEVER = -1e9


class Reading(NamedTuple):
    """Holds the best answer to one question, wanted or not.

    Args:
        span: tuple (first, last) of int, in words of the passage.
        score: float, in nats: log p of both places less that of "no answer".
        probability: float: p(start) p(end) of the span.
        start: float (1 + P,). p(start): of "no answer", then of each of the P
            words of the passage.
        end: float (1 + P,). p(end), likewise.
    """

    span: Any
    score: Any
    probability: Any
    start: Any
    end: Any


def read(model, table, questions, longest=None, batch_size=64):
    """Reads the passage of each question.

    Args:
        model: `keras_attn.models.SpanExtractor`.
        table: `QuestionTable`.
        questions: list of `Question`; their spans are not looked at.
        longest: int. Words of the longest answer; default None, no limit.
        batch_size: int. Rows read together; the last batch is filled up.

    Returns:
        List of `Reading`, in the order of the questions.
    """
    groups, found = {}, [None] * len(questions)
    for number, question in enumerate(questions):
        size = len(question.asked) + 1 + len(question.passage)
        groups.setdefault(-(-size // _STEP) * _STEP, []).append(number)
    for length, numbers in sorted(groups.items()):
        for first in range(0, len(numbers), batch_size):
            part = numbers[first : first + batch_size]
            filled = np.resize(part, batch_size)
            inputs = table.encode([questions[i] for i in filled], length)
            logits = np.asarray(model.predict_on_batch(inputs), "float64")
            for number, row in zip(part, logits, strict=False):
                found[number] = _reading(row, questions[number], longest)
    return found


def decide(readings, threshold=0.0):
    """Returns the spans whose score is above a threshold, None for others.

    Args:
        readings: list of `Reading`.
        threshold: float, in nats. Default 0: an answer where it is likelier
            than that there is none.
    """
    return [one.span if one.score > threshold else None for one in readings]


def _reading(logits, question, longest):
    """Reads one row of logits (2, 1 + T)."""
    begins, words = len(question.asked) + 2, len(question.passage)
    logits = np.concatenate(
        [logits[:, :1], logits[:, begins : begins + words]], axis=1
    )
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    # Asked without the alternative, it names the best span in any case.
    forced = logits.copy()
    forced[:, 0] = _NEVER
    best = best_spans(forced[None], longest)
    first, last = int(best.start[0]), int(best.end[0])
    score = logits[0, 1 + first] + logits[1, 1 + last] - logits[:, 0].sum()
    probability = p[0, 1 + first] * p[1, 1 + last]
    return Reading((first, last), score, probability, p[0], p[1])
