"""group_references: all translations of each source."""

from keras_attn import checks


def group_references(pairs):
    """Groups the translations of each source, as references of BLEU.

    Args:
        pairs: list of `TranslationPair`, or of other tuples (source, target)
            of str.

    Returns:
        Tuple `(sources, references)`. `sources` lists each source once, in the
        order of its first pair; `references` has for each source the list of
        its distinct translations.

    Raises:
        ValueError: `pairs` is not a list of pairs of str.

    Examples:
        >>> keras_attn.datasets.group_references(
        ...     [("Go.", "Ve."), ("Stop!", "¡Alto!"), ("Go.", "Vete.")])
        (['Go.', 'Stop!'], [['Ve.', 'Vete.'], ['¡Alto!']])
    """
    expected = "a list of tuples (source, target) of str"
    found = {}
    for pair in checks.iterable("pairs", pairs, expected):
        if (
            not isinstance(pair, (list, tuple))
            or len(pair) != 2
            or not all(isinstance(text, str) for text in pair)
        ):
            raise ValueError(
                f"`pairs` must be {expected}. "
                f"Received: an item {checks.shown(pair)}"
            )
        source, target = pair
        # A dict is an ordered set.
        found.setdefault(source, {})[target] = None
    return list(found), [list(targets) for targets in found.values()]
