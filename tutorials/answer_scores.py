"""How good answers are: exact match, F1, and the questions without one.

Of N questions, where p is the span that was found and g the right one, each
either None or words of the passage:

    exact match = share of questions with p = g
    word F1     = mean of 2 |p and g| / (|p| + |g|) over the questions, counted
                  in places of the passage; where either is None, 1 if both are

(Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250, sec. 6.1, compare
words, not places.) Over all questions together, as for slots in dialogues,
where half a span is as wrong as none:

    span precision = right spans / spans found
    span recall    = right spans / spans there are
    span F1        = their harmonic mean

and for "no answer" its own precision and recall.
"""


def scores(found, questions):
    """Scores answers.

    Args:
        found: list of (first, last) in the passage, or None.
        questions: list of `Question`, as many.

    Returns:
        Dict of float in [0, 1]: "exact match", "word F1", "span precision",
        "span recall", "span F1", "none precision", "none recall". A share of
        nothing is 0.

    Raises:
        ValueError: not as many answers as questions.

    Examples:
    >>> from questions import Question
    >>> question = Question(["who"], ["the", "cat", "slept"], (0, 1))
    >>> result = scores([(1, 1)], [question])
    >>> result["exact match"], round(result["word F1"], 3)
    (0.0, 0.667)
    """
    if len(found) != len(questions) or not questions:
        raise ValueError(
            "`found` must have an answer for each of at least one question. "
            f"Received: {len(found)} for {len(questions)}"
        )
    right = [question.span for question in questions]
    pairs = list(zip(found, right, strict=True))
    hits = sum(p is not None and p == g for p, g in pairs)
    nones = sum(p is None and g is None for p, g in pairs)
    precision, recall = (
        _share(hits, sum(span is not None for span in side))
        for side in (found, right)
    )
    return {
        "exact match": _share(hits + nones, len(pairs)),
        "word F1": _share(sum(overlap(p, g) for p, g in pairs), len(pairs)),
        "span precision": precision,
        "span recall": recall,
        "span F1": _share(2 * precision * recall, precision + recall),
        "none precision": _share(nones, sum(span is None for span in found)),
        "none recall": _share(nones, sum(span is None for span in right)),
    }


def overlap(one, other):
    """Returns the F1 of the places of two spans, 1 where both are None.

    Examples:
    >>> overlap((2, 5), (4, 5)), overlap(None, (0, 0)), overlap(None, None)
    (0.6666666666666666, 0.0, 1.0)
    """
    if one is None or other is None:
        return float(one == other)
    common = min(one[1], other[1]) - max(one[0], other[0]) + 1
    both = one[1] - one[0] + other[1] - other[0] + 2
    return 2 * max(0, common) / both


def _share(part, whole):
    return part / whole if whole else 0.0
