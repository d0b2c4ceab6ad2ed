"""Exact match and F1 of answers, as in SQuAD."""

import collections
import re
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_attn import checks
from keras_attn.text import arguments


class SquadScores(NamedTuple):
    """Scores of an answer.

    Args:
        exact_match: float. 1.0 or 0.0.
        f1: float in [0, 1].

    Examples:
        >>> keras_attn.text.SquadScores(exact_match=0.0, f1=0.5).f1
        0.5
    """

    exact_match: float
    f1: float


def squad_scores(prediction: str, references: Sequence[str]) -> SquadScores:
    """Compares an answer with the correct ones, as SQuAD's evaluation does.

        precision = common / words(prediction)
        recall = common / words(reference)
        F1 = 2 * precision * recall / (precision + recall)

    where `common` is the number of words in both, each as often as it is in
    both. Upper case, punctuation and the articles "a", "an" and "the" are
    ignored. The exact match is 1 if all words are equal, in the same order. Of
    several references, the best one counts. If there is none, or if one text
    has no words, both scores are 1 if neither has words, otherwise 0.
    Rajpurkar et al. 2016, sec. 6.1, https://arxiv.org/abs/1606.05250, and the
    evaluation script of version 2.0, https://rajpurkar.github.io/SQuAD-explorer.

    The scores of a data set are the means of those of its questions.

    Args:
        prediction: str. The answer of a model; "" means no answer.
        references: list of str. The correct answers; empty if there is none.

    Returns:
        `SquadScores`.

    Raises:
        ValueError: an argument is not a str or a list of str.

    Examples:
        >>> scores = keras_attn.text.squad_scores("a red box", ["The box!"])
        >>> scores.exact_match, round(scores.f1, 3)
        (0.0, 0.667)
        >>> keras_attn.text.squad_scores("", [])
        SquadScores(exact_match=1.0, f1=1.0)
    """
    found = _words(arguments.checked_text("prediction", prediction))
    expected = map(_words, arguments.text_lines("references", references))
    # A reference such as "the" has no words.
    scores = [
        SquadScores(float(found == words), _f1(found, words))
        for words in [*filter(None, expected)] or [[]]
    ]
    return max(scores)


def squad_threshold(
    predictions: Sequence[str],
    scores: Sequence[float],
    references: Sequence[Sequence[str]],
) -> float:
    """Chooses the lowest score of an answer, by the F1 of a validation set.

    A model that can decline to answer gives each answer a score, and answers if
    the score is at least the threshold. The threshold returned has
    the highest mean F1, as `find_best_thresh` of SQuAD's evaluation script; of
    equally good ones, it is that nearest to 0.

    Args:
        predictions: list of str. The best answer to each question.
        scores: list of float, as many. Their scores, in any unit.
        references: list of lists of str, as many: see `squad_scores`.

    Returns:
        float: 0, one of the scores, or a number above all.

    Raises:
        ValueError: an argument has another type or value, or there is no
            question.

    Examples:
        >>> keras_attn.text.squad_threshold(
        ...     ["box", "Oslo", "Rome"], [1.5, -0.5, -2],
        ...     [["box"], ["Oslo"], []])
        -0.5
    """
    predictions = list(arguments.text_lines("predictions", predictions))
    expected = "a list of lists of str"
    references = arguments.text_list("references", references, expected)
    scores = [
        checks.real("scores", score)
        for score in checks.iterable("scores", scores, "a list of float")
    ]
    if not len(predictions) == len(scores) == len(references) > 0:
        raise ValueError(
            "`scores` and `references` must be as many as `predictions`, at "
            f"least one. Received: {len(scores)}, {len(references)} and "
            f"{len(predictions)}"
        )
    gains = [
        squad_scores(text, texts).f1 - squad_scores("", texts).f1
        for text, texts in zip(predictions, references, strict=True)
    ]
    order = np.argsort(scores)
    # What the answers gain if all from an index on are given.
    totals = np.append(np.cumsum(np.array(gains)[order[::-1]])[::-1], 0.0)
    options = np.array([0.0, *scores, np.nextafter(max(scores), np.inf)])
    found = totals[np.searchsorted(np.array(scores)[order], options)]
    # Sums of the same numbers differ by rounding.
    best = options[found > found.max() - 1e-9]
    return float(best[np.abs(best).argmin()])


def _words(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def _f1(found, expected):
    if not found or not expected:
        return float(found == expected)
    common = collections.Counter(found) & collections.Counter(expected)
    return 2 * common.total() / (len(found) + len(expected))
