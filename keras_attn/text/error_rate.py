"""Edit distance, character error rate and word error rate."""

from collections.abc import Iterable, Sequence
from typing import Any

from keras_attn import checks
from keras_attn.text import arguments


def edit_distance(
    first: str | Iterable[Any], second: str | Iterable[Any]
) -> int:
    """Computes the Levenshtein distance of two sequences.

    The smallest number of items to insert, delete or replace that turns one
    sequence into the other (Levenshtein 1966):

        d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1,
                      d[i - 1, j - 1] + (first[i] != second[j]))

    Takes time proportional to the product of both lengths, and memory for one
    row of d.

    Args:
        first: str, or iterable of hashable items such as words or ids.
        second: str, or iterable of hashable items.

    Returns:
        int.

    Raises:
        ValueError: an argument is not a sequence of hashable items.

    Examples:
        >>> keras_attn.text.edit_distance("kitten", "sitting")
        3
        >>> keras_attn.text.edit_distance("to be".split(), "not to be".split())
        1
    """
    first, second = _items("first", first), _items("second", second)
    # Equal items at both ends are part of a shortest edit.
    start, stop = 0, min(len(first), len(second))
    while start < stop and first[start] == second[start]:
        start += 1
    end = 0
    while end < stop - start and first[-1 - end] == second[-1 - end]:
        end += 1
    first = first[start : len(first) - end]
    second = second[start : len(second) - end]
    row = list(range(len(second) + 1))
    for i, item in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            if item == other:
                cost = diagonal
            else:
                cost = 1 + min(diagonal, row[j], row[j - 1])
            diagonal, row[j] = row[j], cost
    return row[-1]


def error_rate(
    predictions: Sequence[str],
    references: Sequence[str],
    unit: str = "character",
) -> float:
    """Computes the character error rate (CER) or the word error rate (WER).

        error rate = sum_i edits(prediction_i, reference_i)
                     / sum_i length(reference_i)

    over all texts i, with the `edit_distance`. It is above 1 if predictions are
    much too long. The whole lists are one rate, not the mean of the rates of
    the texts. White space at both ends is ignored, and words are separated by
    any white space, as in jiwer (https://github.com/jitsi/jiwer). Upper and
    lower case differ.

    Args:
        predictions: list of str.
        references: list of str, as many. The correct texts; some may be empty,
            but not all.
        unit: "character" or "word". Default "character".

    Returns:
        float >= 0.

    Raises:
        ValueError: an argument is not a list of str, the lists have different
            lengths, all references are empty, or `unit` is another value.

    Examples:
        >>> keras_attn.text.error_rate(["HELO", "MOM"], ["HELLO", "MOM"])
        0.125
        >>> keras_attn.text.error_rate(
        ...     ["the cat sat"], ["the cat sat down"], unit="word")
        0.25
    """
    predictions = list(arguments.text_lines("predictions", predictions))
    references = list(arguments.text_lines("references", references))
    checks.choice("unit", unit, ("character", "word"))
    if len(predictions) != len(references):
        raise ValueError(
            "`predictions` must have one text per text of `references`. "
            f"Received: {len(predictions)} and {len(references)} texts"
        )
    split = str.split if unit == "word" else str.strip
    predictions, references = (
        [split(text) for text in texts] for texts in (predictions, references)
    )
    total = sum(map(len, references))
    if not total:
        raise ValueError(
            f"`references` must have at least one {unit}. Received: none"
        )
    return sum(map(edit_distance, predictions, references)) / total


def _items(name, value):
    """Returns a str or a list of hashable items, or raises ValueError."""
    expected = "a str or an iterable of hashable items"
    if isinstance(value, str):
        return value
    if hasattr(value, "shape"):
        value = arguments.to_numpy(name, value, expected)
    items = arguments.text_list(name, value, expected)
    try:
        for item in items:
            hash(item)
    except TypeError as error:
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: an item of type {type(item).__name__}"
        ) from error
    return items
