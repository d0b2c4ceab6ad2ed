"""The character error rate: what has to be mended, by edit distance."""

from edit_distance import levenshtein


def character_error_rate(found, wanted):
    """Returns the share of characters that are wrong.

    Args:
        found: list of str.
        wanted: list of str, as many.

    Returns:
        Float: edits over all texts, by the characters of `wanted`. It may be
        above 1 where much too much was found.

    Raises:
        ValueError: lists of different lengths, or nothing wanted.

    Examples:
        >>> character_error_rate(["HELO", "MOM"], ["HELLO", "MOM"])
        0.125
    """
    if len(found) != len(wanted):
        raise ValueError(
            "`found` must have a text for each of `wanted`. "
            f"Received: {len(found)} and {len(wanted)} texts"
        )
    characters = sum(map(len, wanted))
    if not characters:
        raise ValueError(
            "`wanted` must hold at least one character. Received: none"
        )
    edits = sum(map(levenshtein, found, wanted))
    return edits / characters
