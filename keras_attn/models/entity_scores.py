"""Precision, recall and F1 of entities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_attn import checks
from keras_attn.models.bio_spans import bio_spans


class EntityScores(NamedTuple):
    """Scores of predicted entities.

    Args:
        precision: float in [0, 1].
        recall: float in [0, 1].
        f1: float in [0, 1].

    Examples:
        >>> keras_attn.models.EntityScores(1.0, 0.5, 2 / 3).recall
        0.5
    """

    precision: float
    recall: float
    f1: float


def entity_scores(
    predictions: Sequence[Any], references: Sequence[Any]
) -> EntityScores:
    """Compares the entities of predicted BIO tags with the correct ones.

        precision = right / predicted
        recall = right / expected
        F1 = 2 * right / (predicted + expected)

    where `right` counts the entities that have the same label, first word and
    last word in both, over all sentences and labels. A quotient with a divisor
    of 0 is 0. The scores of the CoNLL shared tasks (Tjong Kim Sang and Buchholz
    2000, https://aclanthology.org/W00-0726), and of seqeval
    (https://github.com/chakki-works/seqeval) by default.

    Args:
        predictions: list of sentences, each a list of BIO tags, one per word;
            see `bio_spans`.
        references: list of as many sentences, with as many tags.

    Returns:
        `EntityScores`.

    Raises:
        ValueError: an argument has another form, or another number of sentences
            or of tags.

    Examples:
        >>> scores = keras_attn.models.entity_scores(
        ...     [["B-city", "O", "B-name"]], [["B-city", "O", "O"]])
        >>> scores.precision, scores.recall
        (0.5, 1.0)
    """
    found, expected = (
        _entities(name, rows)
        for name, rows in (
            ("predictions", predictions),
            ("references", references),
        )
    )
    sizes = [[size for size, _ in rows] for rows in (found, expected)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            "`predictions` must have one tag per tag of `references`. "
            f"Received: {len(found)} and {len(expected)} sentences, "
            f"{sum(sizes[0])} and {sum(sizes[1])} tags"
        )
    pairs = [*zip(found, expected, strict=True)]
    right = sum(len(first & second) for (_, first), (_, second) in pairs)
    predicted = sum(len(entities) for _, entities in found)
    wanted = sum(len(entities) for _, entities in expected)
    return EntityScores(
        right / max(1, predicted),
        right / max(1, wanted),
        2 * right / max(1, predicted + wanted),
    )


def _entities(name, sentences):
    """Returns the number of tags and the set of entities of each sentence."""
    expected = "a list of lists of BIO tags"
    rows = []
    for tags in checks.iterable(name, sentences, expected):
        tags = list(checks.iterable(name, tags, expected))
        try:
            rows.append((len(tags), {*bio_spans(tags)}))
        except ValueError as error:
            raise ValueError(
                f"`{name}` must be {expected}. Received: {error}"
            ) from error
    return rows
